// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/progress_view.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/figures.h"
#include "client/cli/status/at_risk.h"
#include "client/cli/status/group_progress.h"

namespace covey::cli {
namespace {

constexpr size_t kGroupsInLineMax = 4;

std::string Waiting(const proto::StatusReply& status) {
  const std::string& missing = status.view().waiting_for();
  return absl::StrCat("waiting for ", missing.empty() ? "the cluster to form" : missing);
}

std::string Elapsed(absl::Duration elapsed) { return ShowSeconds(absl::ToDoubleSeconds(elapsed)); }

std::string Rest(size_t groups) { return absl::StrCat("and ", groups, " more groups"); }

// Empty where nothing is kept in a store.
std::string AtRisk(const proto::StatusReply& status) {
  if (status.at_risk().snapshot().empty()) return "";
  return absl::StrCat("at risk: ", ShowAtRisk(status.at_risk()));
}

// The text in place of numbers, or after them.
std::string Note(const GroupProgress& group) {
  if (group.state == proto::Group::BROKEN) return absl::StrCat("broken: ", group.reason);
  if (group.state == proto::Group::DONE) return "done";
  if (!group.started) return "starting";
  if (group.stragglers == 0) return "";
  return absl::StrCat(group.stragglers, group.stragglers == 1 ? " straggler" : " stragglers");
}

}  // namespace

std::vector<std::string> ProgressBlock(const proto::StatusReply& status, absl::Duration elapsed,
                                       size_t lines_max) {
  const std::vector<GroupProgress> groups = ProgressOfGroups(status);
  if (groups.empty()) return {absl::StrCat(Elapsed(elapsed), "  ", Waiting(status))};

  if (!AtRisk(status).empty() && lines_max > 1) --lines_max;
  const bool all_fit = groups.size() <= lines_max;
  const size_t shown = all_fit ? groups.size() : std::max<size_t>(lines_max, 1) - 1;
  std::vector<std::string> lines;
  for (size_t i = 0; i < shown; ++i) {
    const GroupProgress& group = groups[i];
    std::string line = absl::StrFormat("group %-3d", group.group);
    if (group.started) {
      absl::StrAppendFormat(&line, " step %8s  samples %11s  %9s samples/s  loss %-8s staleness %s",
                            ShowCount(group.step), ShowCount(group.samples),
                            ShowNumber(group.samples_per_second), ShowNumber(group.loss),
                            ShowNumber(group.staleness));
    }
    if (const std::string note = Note(group); !note.empty()) absl::StrAppend(&line, "  ", note);
    lines.push_back(std::move(line));
  }
  if (!all_fit) lines.push_back(Rest(groups.size() - shown));
  if (const std::string at_risk = AtRisk(status); !at_risk.empty()) lines.push_back(at_risk);
  return lines;
}

std::string ProgressLine(const proto::StatusReply& status, absl::Duration elapsed) {
  const std::vector<GroupProgress> groups = ProgressOfGroups(status);
  std::string line = Elapsed(elapsed);
  if (groups.empty()) return absl::StrCat(line, ": ", Waiting(status));
  const size_t shown = std::min(groups.size(), kGroupsInLineMax);
  for (size_t i = 0; i < shown; ++i) {
    const GroupProgress& group = groups[i];
    absl::StrAppend(&line, i == 0 ? ": " : "; ", "group ", group.group);
    if (group.started) {
      absl::StrAppend(&line, " step ", ShowCount(group.step), ", ", ShowCount(group.samples),
                      " samples, ", ShowNumber(group.samples_per_second), "/s, loss ",
                      ShowNumber(group.loss), ", staleness ", ShowNumber(group.staleness));
    }
    if (const std::string note = Note(group); !note.empty()) absl::StrAppend(&line, " ", note);
  }
  if (shown < groups.size()) absl::StrAppend(&line, "; ", Rest(groups.size() - shown));
  if (const std::string at_risk = AtRisk(status); !at_risk.empty()) {
    absl::StrAppend(&line, "; ", at_risk);
  }
  return line;
}

}  // namespace covey::cli

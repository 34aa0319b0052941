// SPDX-License-Identifier: Apache-2.0
#include "client/cli/top/top_view.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/text_table.h"
#include "client/cli/events/events_view.h"
#include "client/cli/status/group_progress.h"
#include "client/cli/status/members_view.h"
#include "client/cli/status/status_view.h"
#include "client/cli/status/tables_view.h"

namespace covey::cli {
namespace {

using Lines = std::vector<std::string>;

constexpr size_t kEvidenceLines = 3;
constexpr size_t kEventsInText = 10;

Lines LinesOf(const std::string& text) {
  Lines lines = absl::StrSplit(text, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

void Append(Lines& lines, const Lines& more) {
  lines.insert(lines.end(), more.begin(), more.end());
}

// Workers and groups that train slowest come first.
proto::StatusReply Ordered(const proto::StatusReply& status, TopOrder order) {
  proto::StatusReply result = status;
  if (order == TopOrder::kByName) return result;
  std::map<uint32_t, double> speeds;
  for (const GroupProgress& group : ProgressOfGroups(status)) {
    speeds[group.group] = group.samples_per_second;
  }
  auto& groups = *result.mutable_view()->mutable_groups();
  std::stable_sort(groups.begin(), groups.end(), [&](const proto::Group& a, const proto::Group& b) {
    return speeds[a.id()] < speeds[b.id()];
  });
  std::stable_sort(result.mutable_nodes()->begin(), result.mutable_nodes()->end(),
                   [](const proto::NodeStatus& a, const proto::NodeStatus& b) {
                     return a.pace().slowness() > b.pace().slowness();
                   });
  return result;
}

// The newest `count` of one kind, or of all; oldest first.
Lines Events(const proto::StatusReply& status, absl::string_view kind, size_t count) {
  Lines lines;
  for (auto event = status.events().rbegin(); event != status.events().rend(); ++event) {
    if (lines.size() == count) break;
    const std::vector<std::string> kinds = KindsOfEvent(*event);
    if (!kind.empty() && std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) continue;
    lines.push_back(absl::StrFormat(
        "%10s  %s", ShowSeconds(static_cast<double>(event->at_ms()) / 1000), event->text()));
  }
  std::reverse(lines.begin(), lines.end());
  return lines;
}

Lines Queues(const proto::StatusReply& status) {
  std::map<uint64_t, std::string> names;
  for (const proto::Node& node : status.view().nodes()) {
    if (node.state() == proto::Node::ALIVE) names[node.id()] = node.name();
  }
  TextTable table({"SERVER", "TABLES", "REPLICAS", "QUEUED", "PUSHES", "PULLS", "REFUSED",
                   "MALFORMED", "UNFIT"});
  for (const proto::NodeStatus& node : status.nodes()) {
    const auto name = names.find(node.node());
    if (!node.has_load() || name == names.end()) continue;
    const proto::ServerLoad& load = node.load();
    table.Add({name->second, ShowBytes(load.table_bytes()), ShowBytes(load.replica_bytes()),
               ShowBytes(load.queued_bytes()), ShowCount(load.pushes()), ShowCount(load.pulls()),
               ShowCount(load.refused()), ShowCount(load.malformed()),
               ShowCount(load.unfit_replicas())});
  }
  return table.empty() ? Lines() : LinesOf(table.Render());
}

Lines PaneLines(const proto::StatusReply& status, TopPane pane, size_t room) {
  Lines lines;
  switch (pane) {
    case TopPane::kGroups: {
      if (status.view().groups().empty()) return {"no groups yet"};
      lines = LinesOf(GroupsText(status));
      if (const std::string workers = WorkersText(status); !workers.empty()) {
        lines.emplace_back();
        Append(lines, LinesOf(workers));
      }
      Append(lines, Events(status, "straggler", kEvidenceLines));
      return lines;
    }
    case TopPane::kNodes:
      if (status.view().nodes().empty()) return {"no nodes yet"};
      lines = Queues(status);
      if (!lines.empty()) lines.emplace_back();
      Append(lines, LinesOf(NodesText(status)));
      return lines;
    case TopPane::kTables:
      if (status.view().tables().empty()) return {"no tables yet"};
      return LinesOf(TablesInUseText(status));
    case TopPane::kEvents:
      return Events(status, "", room);
  }
  return lines;
}

// Fits into the columns; a name from outside cannot steer the terminal.
std::string Cut(std::string line, size_t columns) {
  for (char& letter : line) {
    if (absl::ascii_iscntrl(static_cast<unsigned char>(letter))) letter = '?';
  }
  if (line.size() <= columns) return line;
  // No part of a character stays.
  while (columns > 0 && (static_cast<unsigned char>(line[columns]) & 0xc0) == 0x80) --columns;
  line.resize(columns);
  return line;
}

std::string Keys(const TopScreen& screen) {
  static constexpr const char* kNames[] = {"groups", "nodes", "tables", "events"};
  std::string text;
  for (size_t i = 0; i < std::size(kNames); ++i) {
    const bool is_shown = i == static_cast<size_t>(screen.pane);
    absl::StrAppend(&text, is_shown ? "[" : " ", i + 1, " ", kNames[i], is_shown ? "]" : " ");
  }
  return absl::StrCat(text, screen.order == TopOrder::kByName ? "  s slowest first" : "  s by name",
                      "  q quit");
}

}  // namespace

std::vector<std::string> TopLines(const proto::StatusReply& status, const TopScreen& screen) {
  if (screen.rows == 0) return {};
  const proto::StatusReply ordered = Ordered(status, screen.order);
  const size_t room = screen.rows - 1;  // above the keys
  Lines lines = LinesOf(HealthText(ordered));
  // Problems never hide the pane.
  if (lines.size() > room / 2) lines.resize(std::max<size_t>(1, room / 2));
  lines.emplace_back();
  const size_t left = room > lines.size() ? room - lines.size() : 0;
  Append(lines, PaneLines(ordered, screen.pane, left));
  if (lines.size() + 2 <= room && screen.pane != TopPane::kEvents) {
    lines.emplace_back();
    Append(lines, Events(ordered, "", room - lines.size()));
  }
  lines.resize(room);
  lines.push_back(Keys(screen));
  for (std::string& line : lines) line = Cut(std::move(line), screen.columns);
  return lines;
}

std::string TopText(const proto::StatusReply& status) {
  Lines lines = LinesOf(HealthText(status));
  for (const TopPane pane :
       {TopPane::kGroups, TopPane::kNodes, TopPane::kTables, TopPane::kEvents}) {
    lines.emplace_back();
    Append(lines, PaneLines(status, pane, kEventsInText));
  }
  std::string text;
  for (std::string& line : lines) absl::StrAppend(&text, Cut(line, line.size()), "\n");
  return text;
}

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/plan/plan_view.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/console/figures.h"
#include "client/cli/console/json_text.h"
#include "client/cli/console/text_table.h"
#include "client/cli/status/group_progress.h"
#include "common/base/plural.h"
#include "common/base/status_macros.h"
#include "common/grouping/plan_inputs.h"

namespace covey::cli {
namespace {

using Json = nlohmann::ordered_json;

// A longer list of members ends with how many follow.
constexpr size_t kMembersShown = 6;

using Names = std::map<uint64_t, std::string>;

std::vector<std::string> NamesOf(const Names& names, const std::vector<NodeId>& nodes) {
  std::vector<std::string> result;
  for (const NodeId node : nodes) {
    const auto name = names.find(node.value());
    result.push_back(name == names.end() ? absl::StrCat("node ", node.value()) : name->second);
  }
  return result;
}

std::string ShowMembers(const std::vector<std::string>& members) {
  const size_t shown = std::min(members.size(), kMembersShown);
  std::string text = absl::StrJoin(members.begin(), members.begin() + shown, " ");
  if (shown < members.size()) absl::StrAppend(&text, " and ", members.size() - shown, " more");
  return text;
}

// "" when it is not known.
std::string ShowRate(double value) { return value > 0 ? ShowNumber(value) : ""; }
std::string ShowTime(double seconds) {
  if (!(seconds > 0)) return "";
  return seconds < 1 ? absl::StrCat(ShowNumber(seconds * 1e3), " ms") : ShowSeconds(seconds);
}

// "612 (-4 %)": how far it is from what was predicted.
std::string ShowMeasured(double measured, double predicted) {
  if (!(measured > 0)) return "";
  if (!(predicted > 0)) return ShowNumber(measured);
  return absl::StrFormat("%s (%+.0f %%)", ShowNumber(measured), (measured / predicted - 1) * 100);
}

absl::Status Nothing(absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("there is nothing to plan yet: ", why));
}

absl::Status CheckIsPlanned(const proto::StatusReply& status) {
  const proto::ClusterView& view = status.view();
  if (view.groups().empty()) {
    return Nothing(absl::StrCat("no groups have formed; the job waits for ",
                                view.waiting_for().empty() ? "workers" : view.waiting_for()));
  }
  if (view.tables().empty()) return Nothing("the job has no table; its program makes them");
  if (!status.has_plan()) {
    return Nothing(
        "no worker can be in a group (covey status shows them), or the scheduler is of a release "
        "before 0.2.0; upgrade it");
  }
  return absl::OkStatus();
}

std::string Heading(const PlanPage& page) {
  std::string text = absl::StrCat(Plural(page.present.groups.size(), "group"), ", ",
                                  page.automatic ? "chosen by the scheduler" : "as configured");
  if (page.next_seconds > 0) {
    absl::StrAppend(&text, ", which looks again in ", ShowSeconds(page.next_seconds));
  }
  return absl::StrCat(text, "\n");
}

std::string GroupsText(const PlanPage& page) {
  TextTable table({"GROUP", "SAMPLES/S", "PREDICTED", "STEP", "PREDICTED", "COMPUTE", "COMMUNICATE",
                   "WORKERS"});
  for (const PlanPage::Group& group : page.groups) {
    const double compute = group.predicted.terms.compute_seconds;
    const double step = group.predicted.step_seconds;
    const double rate = group.predicted.samples_per_second;
    table.Add({absl::StrCat(group.id), ShowMeasured(group.measured, rate), ShowRate(rate),
               ShowTime(group.measured_step), ShowTime(step), ShowTime(compute),
               ShowTime(step - compute), ShowMembers(group.members)});
  }
  table.Add({"all", ShowMeasured(page.measured, page.present.samples_per_second),
             ShowRate(page.present.samples_per_second), "", "", "", "", ""});
  return table.Render();
}

std::string CandidatesText(const PlanPage& page) {
  TextTable table({"GROUPS", "SAMPLES/S", "X MEASURED", "X STATISTICAL", "= PROGRESS", ""});
  for (const PlanCandidate& candidate : page.best.candidates) {
    const bool is_best = candidate.groups == page.best.groups.size();
    const bool is_present = candidate.groups == page.present.groups.size();
    table.Add({absl::StrCat(candidate.groups), ShowNumber(candidate.samples_per_second),
               absl::StrFormat("%.2f", candidate.fit),
               absl::StrFormat("%.3f", candidate.statistical_factor), ShowNumber(candidate.value()),
               absl::StrCat(is_best ? "best" : "", is_best && is_present ? ", " : "",
                            is_present ? "as many as now" : "")});
  }
  return table.Render();
}

std::string AdviceText(const PlanPage& page) {
  if (page.gain() <= kReplanGainMin) {
    return absl::StrFormat(
        "No other groups would make more progress by %.0f %% or more, which a change must bring.\n",
        kReplanGainMin * 100);
  }
  std::string text =
      absl::StrFormat("Other groups would make %.1f %% more progress%s:\n", page.gain() * 100,
                      page.automatic ? "" : " (see --groups auto of the scheduler)");
  for (const std::vector<std::string>& members : page.best_members) {
    absl::StrAppend(&text, "  ", ShowMembers(members), "\n");
  }
  return text;
}

Json TermsJson(const PlannedGroup& group) {
  return {{"samples_per_second", group.samples_per_second},
          {"step_seconds", group.step_seconds},
          {"compute_seconds", group.terms.compute_seconds},
          {"communication_seconds", group.terms.communication_seconds},
          {"availability", group.terms.availability}};
}

}  // namespace

absl::StatusOr<PlanPage> MakePlanPage(const proto::StatusReply& status) {
  COVEY_RETURN_IF_ERROR(CheckIsPlanned(status));
  COVEY_ASSIGN_OR_RETURN(const PlanInputs inputs, ReadPlanInputs(status.plan(), status.view()));
  PlanPage page{.automatic = status.plan().automatic(),
                .next_seconds = static_cast<double>(status.plan().next_ms()) / 1000,
                .measured = status.plan().measured_samples_per_second(),
                .sources = inputs.sources};
  Names names;
  for (const proto::Node& node : status.view().nodes()) names.emplace(node.id(), node.name());
  std::map<uint64_t, double> steps;
  for (const proto::PlanWorker& worker : status.plan().workers()) {
    steps.emplace(worker.node(), worker.step_seconds());
  }
  const std::vector<GroupProgress> progress = ProgressOfGroups(status);
  std::vector<std::vector<NodeId>> present;
  for (int i = 0; i < status.view().groups_size(); ++i) {
    const proto::Group& group = status.view().groups(i);
    if (group.state() != proto::Group::ACTIVE) continue;
    PlanPage::Group& shown = page.groups.emplace_back();
    shown.id = group.id();
    shown.measured = progress[static_cast<size_t>(i)].samples_per_second;
    std::vector<NodeId>& members = present.emplace_back();
    for (const uint64_t member : group.members()) {
      members.push_back(NodeId(member));
      shown.measured_step = std::max(shown.measured_step, steps[member]);
    }
    shown.members = NamesOf(names, members);
  }
  page.present = EvaluateGroups(inputs.workers, present, inputs.model);
  if (page.present.groups.empty()) return Nothing("all groups have ended");
  std::map<NodeId, const PlannedGroup*> predicted;
  for (const PlannedGroup& group : page.present.groups) {
    for (const NodeId member : group.members) predicted.emplace(member, &group);
  }
  for (size_t i = 0; i < present.size(); ++i) {
    for (const NodeId member : present[i]) {
      const auto found = predicted.find(member);
      if (found != predicted.end()) page.groups[i].predicted = *found->second;
    }
  }
  page.best = PlanGroups(inputs.workers, inputs.options());
  for (const PlannedGroup& group : page.best.groups) {
    page.best_members.push_back(NamesOf(names, group.members));
  }
  return page;
}

std::string PlanText(const PlanPage& page) {
  return absl::StrCat(Heading(page), "\n", GroupsText(page), "\n", CandidatesText(page), "\n",
                      AdviceText(page), "\nPlanned by\n  ", absl::StrJoin(page.sources, "\n  "),
                      "\n");
}

std::string PlanJson(const PlanPage& page) {
  Json groups = Json::array();
  for (const PlanPage::Group& group : page.groups) {
    groups.push_back({{"group", group.id},
                      {"members", group.members},
                      {"samples_per_second", group.measured},
                      {"step_seconds", group.measured_step},
                      {"predicted", TermsJson(group.predicted)}});
  }
  Json candidates = Json::array();
  for (const PlanCandidate& candidate : page.best.candidates) {
    candidates.push_back({{"groups", candidate.groups},
                          {"samples_per_second", candidate.samples_per_second},
                          {"fit", candidate.fit},
                          {"statistical_factor", candidate.statistical_factor},
                          {"progress", candidate.value()}});
  }
  return JsonText({{"automatic", page.automatic},
                   {"next_seconds", page.next_seconds},
                   {"samples_per_second", page.measured},
                   {"predicted_samples_per_second", page.present.samples_per_second},
                   {"groups", groups},
                   {"candidates", candidates},
                   {"gain", page.gain()},
                   {"best", page.best_members},
                   {"inputs", page.sources}});
}

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/straggler_ladder.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/grouping/stragglers/group_efficiency.h"
#include "common/grouping/stragglers/partial_reduce.h"
#include "common/grouping/stragglers/share_shift.h"
#include "common/grouping/stragglers/slowest_removal.h"
#include "common/grouping/stragglers/straggler_rung.h"

namespace covey {

void StragglerLadder::SetOptions(const StragglerOptions& options) {
  options_ = options;
  judge_.SetOptions(options);
  home_return_.SetOptions(options);
  probation_.SetTerm(options.probation);
}

std::optional<StragglerAction> StragglerLadder::Report(NodeId node, const PaceReport& report,
                                                       const GroupInForce* group,
                                                       const std::vector<GroupInForce>& groups) {
  if (options_.highest == StragglerRung::kOff) return std::nullopt;
  judge_.Add(node, report);
  if (group == nullptr) return std::nullopt;
  GroupMemory& memory = groups_[group->id];
  if (memory.generation != group->generation) {
    memory = {.generation = group->generation};
    judge_.Reset(*group);
    for (const GroupMember& member : group->members) {
      home_return_.Forget(member.node);
      noticed_.erase(member.node);
    }
  }
  judge_.Compare(node, *group);
  ++memory.reports;
  const auto member = std::find_if(group->members.begin(), group->members.end(),
                                   [node](const GroupMember& m) { return m.node == node; });
  std::optional<StragglerAction> action = Decide(*group, *member, groups, memory);
  if (action && action->kind != StragglerAction::Kind::kNotice) {
    memory = {.generation = group->generation};
    if (action->kind == StragglerAction::Kind::kEvict) probation_.OnEviction(action->member);
  }
  return action;
}

std::optional<StragglerAction> StragglerLadder::Decide(const GroupInForce& group,
                                                       const GroupMember& reporter,
                                                       const std::vector<GroupInForce>& groups,
                                                       GroupMemory& memory) {
  if (options_.highest == StragglerRung::kObserve) return Notice(reporter);
  const std::vector<const WorkerPace*> paces = judge_.KnownPaces(group);
  if (paces.size() < std::max<size_t>(group.members.size(), 2)) return std::nullopt;
  const GroupEfficiency efficiency = EfficiencyOf(paces);
  const GroupMember& slowest = group.members[efficiency.slowest];
  if (reporter.node == slowest.node) {
    const bool poor = efficiency.part < options_.efficiency_min && judge_.IsStraggler(slowest.node);
    memory.poor = poor ? memory.poor + 1 : 0;
  }
  memory.good = efficiency.part >= options_.efficiency_good ? memory.good + 1 : 0;
  if (memory.reports < options_.settle_reports * group.members.size()) return std::nullopt;

  if (auto action = StopWaiting(group, judge_, options_)) return action;
  if (auto action = ShiftShares(group, judge_, options_)) return action;
  if (memory.poor >= options_.slow_reports) {
    if (auto action = RemoveSlowest(group, efficiency, groups, judge_, options_)) return action;
  }
  if (auto action = home_return_.Consider(group, reporter, groups, judge_)) return action;
  return WaitAgain(group, memory.good, judge_, options_);
}

std::optional<StragglerAction> StragglerLadder::Notice(const GroupMember& member) {
  const bool remarkable = judge_.IsStraggler(member.node) || judge_.HasHiccups(member.node);
  if (remarkable == (noticed_.count(member.node) != 0)) return std::nullopt;
  // As on the other rungs, this one is left only when its cause has gone completely.
  if (!remarkable && judge_.PaceOf(member.node).hiccups() > 0) return std::nullopt;
  if (remarkable) {
    noticed_.insert(member.node);
  } else {
    noticed_.erase(member.node);
  }
  return StragglerAction{
      .kind = StragglerAction::Kind::kNotice,
      .member = member.node,
      .evidence = absl::StrCat(judge_.Describe(member), remarkable ? "" : ": steady again")};
}

std::vector<StragglerAction> StragglerLadder::EndProbation(
    absl::Time now, const std::vector<GroupInForce>& groups,
    const std::vector<GroupMember>& evicted) {
  std::vector<StragglerAction> actions = probation_.End(now, groups, evicted);
  for (const StragglerAction& action : actions) ForgetPace(action.member);  // it is outdated
  return actions;
}

void StragglerLadder::Forget(NodeId member) {
  ForgetPace(member);
  probation_.Forget(member);
}

void StragglerLadder::ForgetPace(NodeId member) {
  judge_.Forget(member);
  home_return_.Forget(member);
  noticed_.erase(member);
}

}  // namespace covey

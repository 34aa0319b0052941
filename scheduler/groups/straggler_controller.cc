// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/straggler_controller.h"

#include <algorithm>

#include "common/grouping/stragglers/straggler_judge.h"
#include "scheduler/groups/measured_progress.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

proto::Pace::State ToProto(StragglerJudge::State state) {
  switch (state) {
    case StragglerJudge::State::kLearning:
      return proto::Pace::LEARNING;
    case StragglerJudge::State::kSteady:
      return proto::Pace::STEADY;
    case StragglerJudge::State::kStraggler:
      return proto::Pace::STRAGGLER;
    case StragglerJudge::State::kHiccups:
      return proto::Pace::HICCUPS;
  }
  return proto::Pace::STATE_UNSPECIFIED;
}

}  // namespace

void StragglerController::OnHeartbeat(absl::Time now, NodeId worker,
                                      const proto::Progress& progress) {
  proto::Progress& last = last_[worker];
  if (!IsNewMeasurement(progress, last)) return;
  Refresh();
  const auto group = group_of_.find(worker);
  if (group != group_of_.end() && HasAwayMember(now, in_force_[group->second])) return;
  last = progress;
  const auto action =
      ladder_.Report(worker,
                     {.compute_seconds = progress.compute_seconds(),
                      .slowest_seconds = progress.slowest_seconds(),
                      .samples_per_step = progress.samples_per_step(),
                      .steps = progress.step(),
                      .steps_aside = progress.steps_aside()},
                     group == group_of_.end() ? nullptr : &in_force_[group->second], in_force_);
  if (action) CarryOut(now, *action);
}

bool StragglerController::HasAwayMember(absl::Time now, const GroupInForce& group) const {
  return std::any_of(group.members.begin(), group.members.end(),
                     [&](const GroupMember& member) { return away_.IsAway(now, member.node); });
}

void StragglerController::Tick(absl::Time now) {
  Refresh();
  std::vector<GroupMember> evicted = evicted_;
  std::erase_if(evicted, [&](const GroupMember& member) { return away_.IsAway(now, member.node); });
  if (evicted.empty()) return;
  for (const StragglerAction& action : ladder_.EndProbation(now, in_force_, evicted)) {
    CarryOut(now, action);
  }
}

void StragglerController::CarryOut(absl::Time now, const StragglerAction& action) {
  switch (action.kind) {
    case StragglerAction::Kind::kNotice: {
      Transaction notice(state_);
      notice.Add(StragglerNoticed{.evidence = action.evidence});
      return notice.Commit();
    }
    case StragglerAction::Kind::kShiftSamples:
      return adjustments_.SetShares(action.group, action.shares, action.evidence);
    case StragglerAction::Kind::kPartialReduce:
      return adjustments_.SetMinimumMembers(action.group, action.minimum_members, action.grace,
                                            action.evidence);
    case StragglerAction::Kind::kRegroup:
      return adjustments_.Move(now, action.member, action.to, action.evidence);
    case StragglerAction::Kind::kEvict:
      return adjustments_.Evict(action.member, action.evidence);
  }
}

void StragglerController::OnDeparture(NodeId node) {
  ladder_.Forget(node);
  last_.erase(node);
}

void StragglerController::Refresh() {
  const proto::ClusterView& view = state_.view();
  if (epoch_ == state_.epoch()) return;
  epoch_ = state_.epoch();
  in_force_.clear();
  group_of_.clear();
  evicted_.clear();
  const auto member_of = [&](const proto::Node& node) {
    return GroupMember{
        .node = NodeId(node.id()), .name = node.name(), .home = GroupId(node.home_group())};
  };
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    GroupInForce& in_force = in_force_.emplace_back();
    in_force.id = GroupId(group.id());
    in_force.generation = group.generation();
    for (const uint64_t member : group.members()) {
      in_force.members.push_back(member_of(*FindNode(view, NodeId(member))));
      group_of_[NodeId(member)] = in_force_.size() - 1;
    }
    in_force.shares.assign(group.shares().begin(), group.shares().end());
    in_force.minimum_members = group.minimum_members();
  }
  for (const proto::Node& node : view.nodes()) {
    if (node.role() == proto::WORKER && node.state() == proto::Node::ALIVE &&
        node.home_group() != 0 && group_of_.count(NodeId(node.id())) == 0) {
      evicted_.push_back(member_of(node));
    }
  }
}

void StragglerController::FillStatus(proto::StatusReply& reply) const {
  for (proto::NodeStatus& status : *reply.mutable_nodes()) {
    const auto standing = ladder_.StandingOf(NodeId(status.node()));
    if (!standing) continue;
    proto::Pace& pace = *status.mutable_pace();
    pace.set_seconds_per_sample(standing->seconds_per_sample);
    pace.set_slowness(standing->slowness);
    pace.set_state(ToProto(standing->state));
  }
}

}  // namespace covey::scheduler

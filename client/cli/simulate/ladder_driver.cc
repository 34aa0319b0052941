// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/ladder_driver.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/check.h"
#include "common/grouping/stragglers/straggler_rung.h"
#include "common/grouping/stragglers/worker_pace.h"

namespace covey::cli {
namespace {

// As in worker/hybrid/progress_meter.h.
constexpr absl::Duration kReportInterval = absl::Seconds(1);

NodeId IdOf(uint32_t node) { return NodeId(uint64_t{node} + 1); }
uint32_t NodeOf(NodeId id) { return static_cast<uint32_t>(id.value() - 1); }

std::string Describe(const StragglerAction& action) {
  const std::string group = absl::StrCat("group ", action.group.value());
  const std::string worker = absl::StrCat("worker-", NodeOf(action.member));
  switch (action.kind) {
    case StragglerAction::Kind::kNotice:
      return "notice: ";
    case StragglerAction::Kind::kShiftSamples:
      return absl::StrCat(group,
                          action.shares.empty() ? ": even shares again: " : ": shares by speed: ");
    case StragglerAction::Kind::kPartialReduce:
      return action.minimum_members == 0
                 ? absl::StrCat(group, " waits for all members again: ")
                 : absl::StrCat(group, " waits for ", action.minimum_members, " members and ",
                                absl::FormatDuration(action.grace), " more: ");
    case StragglerAction::Kind::kRegroup:
      return absl::StrCat(worker, " goes to group ", action.to.value(), ": ");
    case StragglerAction::Kind::kEvict:
      return absl::StrCat(worker, " leaves group ", action.group.value(), ": ");
  }
  return "";
}

}  // namespace

LadderDriver::LadderDriver(World world, Decisions& decisions)
    : world_(std::move(world)),
      decisions_(decisions),
      ladder_({.highest = world_.options.ladder}),
      intervals_(world_.options.nodes),
      planned_(world_.options.nodes) {
  for (const auto& group : world_.groups) {
    GroupInForce& in_force = groups_.emplace_back();
    in_force.id = group->id();
    in_force.generation = 1;
    for (const uint32_t node : group->membership().nodes) {
      in_force.members.push_back({.node = IdOf(node), .name = absl::StrCat("worker-", node)});
      planned_[node] = group->id();
    }
  }
  if (world_.options.ladder == StragglerRung::kEvict) {
    world_.simulator.After(kReportInterval, [this] { EndProbation(); });
  }
}

void LadderDriver::OnComputed(uint32_t node, absl::Duration compute, double samples) {
  Interval& interval = intervals_[node];
  const double seconds = absl::ToDoubleSeconds(compute);
  ++interval.steps;
  ++interval.all_steps;
  interval.compute_seconds += seconds;
  interval.slowest_seconds = std::max(interval.slowest_seconds, seconds);
  interval.samples += samples;
  if (world_.simulator.now() - interval.begun < kReportInterval) return;
  const double steps = static_cast<double>(interval.steps);
  const PaceReport report = {.compute_seconds = interval.compute_seconds / steps,
                             .slowest_seconds = interval.slowest_seconds,
                             .samples_per_step = interval.samples / steps,
                             .steps = interval.all_steps,
                             .steps_aside = world_.nodes[node].steps_aside};
  interval = {.begun = world_.simulator.now(), .all_steps = interval.all_steps};
  const GroupId id = planned_[node];
  const GroupInForce* const group = id == GroupId() ? nullptr : &groups_[id.value() - 1];
  if (const auto action = ladder_.Report(IdOf(node), report, group, groups_)) Carry(*action);
}

void LadderDriver::Carry(const StragglerAction& action) {
  decisions_.emplace_back(world_.simulator.now() - absl::UnixEpoch(),
                          absl::StrCat(Describe(action), action.evidence));
  switch (action.kind) {
    case StragglerAction::Kind::kNotice:
      return;
    case StragglerAction::Kind::kShiftSamples:
      Shift(groups_[action.group.value() - 1], action.shares);
      return;
    case StragglerAction::Kind::kPartialReduce:
      groups_[action.group.value() - 1].minimum_members = action.minimum_members;
      Group(action.group).SetPartial(action.minimum_members, action.grace);
      return;
    case StragglerAction::Kind::kRegroup:
    case StragglerAction::Kind::kEvict:
      Move(action.member, action.kind == StragglerAction::Kind::kEvict ? GroupId() : action.to);
      return;
  }
}

void LadderDriver::Shift(GroupInForce& in_force, const std::vector<uint32_t>& shares) {
  in_force.shares = shares;
  std::vector<uint32_t> by_rank;
  if (!shares.empty()) {
    // The plan may name members that are still moving, and in another order.
    for (const uint32_t node : Group(in_force.id).membership().nodes) {
      const auto member =
          std::find_if(in_force.members.begin(), in_force.members.end(),
                       [node](const GroupMember& other) { return NodeOf(other.node) == node; });
      COVEY_CHECK(member != in_force.members.end());
      by_rank.push_back(shares[static_cast<size_t>(member - in_force.members.begin())]);
    }
  }
  Group(in_force.id).SetShares(by_rank);
}

// The plan changes at once; the node moves when it has finished its step.
void LadderDriver::Move(NodeId member, GroupId to) {
  GroupMember moved{.node = member};
  const GroupId from = planned_[NodeOf(member)];
  if (from != GroupId()) {
    GroupInForce& group = groups_[from.value() - 1];
    const auto found =
        std::find_if(group.members.begin(), group.members.end(),
                     [member](const GroupMember& other) { return other.node == member; });
    COVEY_CHECK(found != group.members.end());
    moved = *found;
    if (moved.home == GroupId()) moved.home = group.id;
    group.members.erase(found);
    ++group.generation;
    group.shares.clear();
    group.minimum_members = 0;
    std::vector<uint32_t> nodes = Group(from).membership().nodes;
    std::erase(nodes, NodeOf(member));
    Group(from).SetMembership(world_.make(std::move(nodes)));
  }
  const auto out =
      std::find_if(evicted_.begin(), evicted_.end(),
                   [member](const GroupMember& other) { return other.node == member; });
  if (out != evicted_.end()) {
    moved = *out;
    evicted_.erase(out);
    if (to == GroupId()) to = moved.home;
  }
  if (to == GroupId()) {
    evicted_.push_back(moved);
  } else {
    if (moved.home == to) moved.home = GroupId();
    GroupInForce& group = groups_[to.value() - 1];
    group.members.push_back(moved);
    ++group.generation;
    group.shares.clear();
    group.minimum_members = 0;
  }
  planned_[NodeOf(member)] = to;
  const bool on_its_way = moving_.contains(NodeOf(member));
  moving_[NodeOf(member)] = to;
  // An evicted node has no step to finish.
  if (from == GroupId() && !on_its_way) OnLeft(NodeOf(member));
}

void LadderDriver::OnLeft(uint32_t node) {
  const auto moving = moving_.find(node);
  COVEY_CHECK(moving != moving_.end());
  const GroupId to = moving->second;
  moving_.erase(moving);
  const uint64_t steps_aside = world_.nodes[node].steps_aside;
  world_.nodes[node] = NodeState();
  world_.nodes[node].steps_aside = steps_aside;
  if (to == GroupId()) return;
  SimulatedGroup& group = Group(to);
  std::vector<uint32_t> nodes = group.membership().nodes;
  nodes.push_back(node);
  group.SetMembership(world_.make(std::move(nodes)));
  // A new generation starts with even shares and waits for all members.
  groups_[to.value() - 1].shares.clear();
  groups_[to.value() - 1].minimum_members = 0;
  group.Join(node);
}

void LadderDriver::EndProbation() {
  const absl::Time now = world_.simulator.now();
  for (const StragglerAction& action : ladder_.EndProbation(now, groups_, evicted_)) Carry(action);
  world_.simulator.After(kReportInterval, [this] { EndProbation(); });
}

}  // namespace covey::cli

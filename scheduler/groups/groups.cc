// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/groups.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "common/grouping/group_planner.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

std::pair<GroupId, uint64_t> GenerationOf(const proto::Group& group) {
  return {GroupId(group.id()), group.generation()};
}

// The members of a group, by their present state.
struct Members {
  std::vector<NodeId> alive;
  std::vector<NodeId> left;
  std::vector<NodeId> dead;
};

Members MembersOf(const proto::ClusterView& view, const proto::Group& group) {
  Members members;
  for (const uint64_t member : group.members()) {
    const NodeId id(member);
    const proto::Node::State state = FindNode(view, id)->state();
    auto& with_state = state == proto::Node::ALIVE  ? members.alive
                       : state == proto::Node::LEFT ? members.left
                                                    : members.dead;
    with_state.push_back(id);
  }
  return members;
}

}  // namespace

void Groups::UpdateWaitingFor(Transaction& change) {
  if (!state_.view().groups().empty()) return;
  proto::ClusterView& view = change.EditView();
  view.set_waiting_for(MissingNodes(state_.job(), view, Expected::kServersAndWorkers));
}

void Groups::OnRegistered(absl::Time now, Transaction& change) {
  if (state_.view().groups().empty()) {
    UpdateWaitingFor(change);
    FormFirst(now, change);
  } else {
    late_.Place(now, change);
  }
}

void Groups::FormFirst(absl::Time now, Transaction& change) {
  const proto::ClusterView& view = state_.view();
  const JobSpec& job = state_.job();
  if (!view.waiting_for().empty() || job.workers() == 0) return;
  if (survey_ != nullptr && !survey_->settled(now)) return;
  std::vector<PlannedWorker> workers;
  for (const proto::Node& node : view.nodes()) {
    if (node.role() == proto::WORKER && node.state() == proto::Node::ALIVE &&
        node.rank() < job.workers()) {
      workers.push_back({.node = NodeId(node.id()), .rank = node.rank(), .labels = node.labels()});
    }
  }
  // Automatic groups are planned when it is known how fast workers are. Until then they are few,
  // because one group is right for every contract.
  const size_t groups = job.plans_groups ? (workers.size() - 1) / kGroupMembersMax + 1 : job.groups;
  roster_.AddFirstGroups(PlanGroups(std::move(workers), groups), change);
  change.Add(FirstGroupsFormed{.groups = view.groups_size(), .automatic = job.plans_groups});
}

void Groups::OnDeparture(absl::Time now, const proto::Node& node, Transaction& change) {
  UpdateWaitingFor(change);
  const NodeId id(node.id());
  late_.OnDeparture(id);
  const bool was_newcomer = roster_.OnDeparture(id);
  const proto::Group* group = FindActiveGroupOf(state_.view(), id);
  if (group == nullptr) return;
  if (node.state() == proto::Node::DEAD) {
    OnMemberDied(*group, node, was_newcomer, change);
  } else {
    const Members members = MembersOf(state_.view(), *group);
    OnMemberLeft(now, *group, members.alive.empty() && members.dead.empty(), change);
  }
}

void Groups::OnMemberLeft(absl::Time now, const proto::Group& group, bool all_left,
                          Transaction& change) {
  if (all_left) {
    change.Edit(group).set_state(proto::Group::DONE);
  } else {
    left_since_.try_emplace(GenerationOf(group), now);
  }
}

void Groups::OnMemberDied(const proto::Group& group, const proto::Node& dead, bool was_newcomer,
                          Transaction& change) {
  const std::vector<NodeId> staying = MembersOf(state_.view(), group).alive;
  if (staying.empty()) {
    proto::Group& edited = change.Edit(group);
    edited.set_state(proto::Group::BROKEN);
    edited.set_reason(absl::StrCat(Describe(dead), " ", dead.departure()));
    return;
  }
  if (!roster_.SetMembers(group, staying, change)) return;
  // Members of a generation that the newcomer was in notice its death themselves.
  if (!was_newcomer) change.Edit(group).set_recovery_generation(group.generation());
  change.Add(GroupRecovers{.group = GroupId(group.id()),
                           .dead = dead.name(),
                           .generation = group.generation(),
                           .members = group.members_size()});
}

void Groups::OnDrain(NodeId worker, Transaction& change) {
  const proto::Group* group = FindActiveGroupOf(state_.view(), worker);
  if (group == nullptr || group->members_size() == 1) return;
  roster_.TakeOut(worker, change);
  proto::Node& node = change.Edit(*FindNode(state_.view(), worker));
  node.set_standby("it drains");
  if (group->state() != proto::Group::ACTIVE) return;
  change.Add(GroupContinuesWithoutDraining{
      .group = GroupId(group->id()), .draining = node.name(), .generation = group->generation()});
}

void Groups::Tick(absl::Time now) {
  Transaction change(state_);
  if (state_.view().groups().empty()) FormFirst(now, change);
  Reform(now, change);
  late_.Place(now, change);
  change.Commit();
}

void Groups::Reform(absl::Time now, Transaction& change) {
  const proto::ClusterView& view = state_.view();
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    const Members members = MembersOf(view, group);
    if (members.left.empty()) continue;
    // After a restart of the scheduler this duration starts from 0.
    const absl::Time since = left_since_.try_emplace(GenerationOf(group), now).first->second;
    if (now - since < options_.regroup_after) continue;
    if (!roster_.SetMembers(group, members.alive, change)) continue;
    change.Add(GroupContinuesWithoutLeavers{.group = GroupId(group.id()),
                                            .left = NamesOf(view, members.left),
                                            .ago = now - since,
                                            .generation = group.generation()});
  }
  std::erase_if(left_since_, [&](const auto& entry) {
    const proto::Group* group = FindGroup(view, entry.first.first);
    return group == nullptr || group->state() != proto::Group::ACTIVE ||
           GenerationOf(*group) != entry.first;
  });
}

}  // namespace covey::scheduler

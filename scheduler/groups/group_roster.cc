// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/group_roster.h"

#include <algorithm>
#include <utility>

#include "common/grouping/group_planner.h"
#include "scheduler/groups/ended_groups.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {

void GroupRoster::OnProgress(NodeId worker, uint64_t step) {
  heard_.insert(worker);
  if (step > 0) newcomers_.erase(worker);
  highest_step_ = std::max(highest_step_, step);
}

bool GroupRoster::OnDeparture(NodeId worker) {
  heard_.erase(worker);
  return newcomers_.erase(worker) > 0;
}

const proto::Group& GroupRoster::AddGroup(const std::vector<NodeId>& members, Transaction& change) {
  proto::ClusterView& view = change.EditView();
  const uint32_t id = view.groups().empty() ? std::max(state_.record().first_group(), 1u)
                                            : view.groups(view.groups_size() - 1).id() + 1;
  const std::vector<GroupId> forgotten = ForgettableGroups(view);
  auto& groups = *view.mutable_groups();
  groups.erase(std::remove_if(groups.begin(), groups.end(),
                              [&](const proto::Group& group) {
                                return std::binary_search(forgotten.begin(), forgotten.end(),
                                                          GroupId(group.id()));
                              }),
               groups.end());
  proto::Group& group = *view.add_groups();
  group.set_id(id);
  group.set_generation(1);
  for (NodeId member : members) {
    group.add_members(member.value());
    change.Edit(*FindNode(view, member)).clear_standby();
    heard_.insert(member);
  }
  group.set_state(proto::Group::ACTIVE);
  return group;
}

void GroupRoster::SetMembers(const proto::Group& group, const std::vector<NodeId>& members,
                             Transaction& change) {
  proto::Group& edited = change.Edit(group);
  std::vector<PlannedWorker> workers;
  for (NodeId member : members) {
    const proto::Node& node = *FindNode(state_.view(), member);
    if (node.state() != proto::Node::ALIVE) continue;
    change.Edit(node).clear_standby();
    workers.push_back({.node = member, .rank = node.rank(), .labels = node.labels()});
  }
  const bool all_new = std::all_of(
      workers.begin(), workers.end(),
      [this](const PlannedWorker& worker) { return newcomers_.count(worker.node) > 0; });
  if (all_new) {
    auto& listed = *edited.mutable_members();
    for (const PlannedWorker& worker : workers) {
      newcomers_.erase(worker.node);
      listed.erase(std::remove(listed.begin(), listed.end(), worker.node.value()), listed.end());
    }
    edited.set_state(proto::Group::DONE);
    return;
  }
  edited.set_generation(edited.generation() + 1);
  edited.clear_members();
  edited.clear_shares();
  edited.clear_minimum_members();
  edited.clear_grace_ms();
  const std::vector<std::vector<NodeId>> ring = PlanGroups(std::move(workers), 1);
  for (NodeId member : ring.front()) edited.add_members(member.value());
}

void GroupRoster::AddNewcomers(const proto::Group& group, const std::vector<NodeId>& workers,
                               Transaction& change) {
  newcomers_.insert(workers.begin(), workers.end());
  std::vector<NodeId> members(workers);
  for (const uint64_t member : group.members()) members.push_back(NodeId(member));
  SetMembers(group, members, change);
}

void GroupRoster::AddMember(const proto::Group& group, NodeId worker, Transaction& change) {
  std::vector<NodeId> members = {worker};
  for (const uint64_t member : group.members()) members.push_back(NodeId(member));
  SetMembers(group, members, change);
}

GroupId GroupRoster::TakeOut(NodeId worker, Transaction& change) {
  const proto::Group* group = FindActiveGroupOf(state_.view(), worker);
  if (group == nullptr) return GroupId();
  std::vector<NodeId> members;
  for (const uint64_t member : group->members()) {
    if (NodeId(member) != worker) members.push_back(NodeId(member));
  }
  SetMembers(*group, members, change);
  return GroupId(group->id());
}

bool GroupRoster::KnowsSteps() const {
  const auto& groups = state_.view().groups();
  return std::all_of(groups.begin(), groups.end(), [this](const proto::Group& group) {
    return group.state() != proto::Group::ACTIVE ||
           std::any_of(group.members().begin(), group.members().end(),
                       [this](uint64_t member) { return heard_.count(NodeId(member)) > 0; });
  });
}

}  // namespace covey::scheduler

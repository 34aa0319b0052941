// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/group_roster.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/grouping/group_planner.h"
#include "scheduler/groups/ended_groups.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {

void GroupRoster::OnProgress(NodeId worker, const proto::Progress& progress) {
  heard_.insert(worker);
  // Workers of earlier versions, and those that take no hybrid steps, tell only their own.
  const uint64_t step = std::max(progress.step(), progress.group_step());
  highest_step_ = std::max(highest_step_, step);
  const auto found = newcomers_.find(worker);
  if (found == newcomers_.end()) return;
  Newcomer& newcomer = found->second;
  const bool names_another = progress.group() != 0 && GroupId(progress.group()) != newcomer.group;
  if (names_another) return;
  if (!newcomer.step) {
    newcomer.step = step;
  } else if (newcomer.step != step) {
    newcomers_.erase(found);
  }
}

bool GroupRoster::OnDeparture(NodeId worker) {
  heard_.erase(worker);
  return newcomers_.erase(worker) > 0;
}

void GroupRoster::AddFirstGroups(const std::vector<std::vector<NodeId>>& planned,
                                 Transaction& change) {
  const uint64_t steps_before = state_.record().steps_before();
  for (const std::vector<NodeId>& members : planned) {
    Append(members, steps_before > 0 ? steps_before + 1 : 0, change);
  }
}

const proto::Group& GroupRoster::AddGroup(const std::vector<NodeId>& members, Transaction& change) {
  // Groups that begin with the same step as the first ones count as these
  // (ClusterView::initial_groups).
  const uint64_t first = state_.view().groups(0).first_step();
  return Append(members, std::max(highest_step_, first) + 1, change);
}

const proto::Group& GroupRoster::Append(const std::vector<NodeId>& members, uint64_t first_step,
                                        Transaction& change) {
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
  group.set_first_step(first_step);
  for (NodeId member : members) {
    group.add_members(member.value());
    change.Edit(*FindNode(view, member)).clear_standby();
    heard_.insert(member);
    newcomers_.erase(member);
  }
  group.set_state(proto::Group::ACTIVE);
  return group;
}

bool GroupRoster::SetMembers(const proto::Group& group, const std::vector<NodeId>& members,
                             Transaction& change) {
  proto::Group& edited = change.Edit(group);
  std::vector<PlannedWorker> workers;
  for (NodeId member : members) {
    const proto::Node& node = *FindNode(state_.view(), member);
    if (node.state() != proto::Node::ALIVE) continue;
    change.Edit(node).clear_standby();
    const auto newcomer = newcomers_.find(member);
    if (newcomer != newcomers_.end() && newcomer->second.group != GroupId(group.id())) {
      newcomer->second = {.group = GroupId(group.id())};
    }
    workers.push_back({.node = member, .rank = node.rank(), .labels = node.labels()});
  }
  const bool all_new =
      std::all_of(workers.begin(), workers.end(),
                  [this](const PlannedWorker& worker) { return IsNewcomer(worker.node); });
  if (all_new) {
    auto& listed = *edited.mutable_members();
    for (const PlannedWorker& worker : workers) {
      newcomers_.erase(worker.node);
      listed.erase(std::remove(listed.begin(), listed.end(), worker.node.value()), listed.end());
    }
    edited.set_state(proto::Group::DONE);
    change.Add(GroupEnded{.group = GroupId(group.id())});
    return false;
  }
  edited.set_generation(edited.generation() + 1);
  edited.clear_members();
  edited.clear_shares();
  edited.clear_minimum_members();
  edited.clear_grace_ms();
  const std::vector<std::vector<NodeId>> ring = PlanGroups(std::move(workers), 1);
  for (NodeId member : ring.front()) edited.add_members(member.value());
  return true;
}

void GroupRoster::AddNewcomers(const proto::Group& group, const std::vector<NodeId>& workers,
                               Transaction& change) {
  for (const NodeId worker : workers) newcomers_[worker] = {.group = GroupId(group.id())};
  std::vector<NodeId> members(workers);
  for (const uint64_t member : group.members()) members.push_back(NodeId(member));
  SetMembers(group, members, change);
}

void GroupRoster::AddMember(const proto::Group& group, NodeId worker, Transaction& change) {
  std::vector<NodeId> members = {worker};
  for (const uint64_t member : group.members()) members.push_back(NodeId(member));
  SetMembers(group, members, change);
}

std::vector<GroupId> GroupRoster::Successors(
    const std::vector<std::vector<NodeId>>& planned) const {
  struct Overlap {
    size_t members = 0;
    uint32_t group = 0;
    size_t index = 0;
  };
  std::vector<Overlap> overlaps;
  for (size_t index = 0; index < planned.size(); ++index) {
    std::map<uint32_t, size_t> members;
    for (const NodeId worker : planned[index]) {
      const proto::Group* group = FindActiveGroupOf(state_.view(), worker);
      if (group != nullptr) ++members[group->id()];
    }
    for (const auto& [group, count] : members) overlaps.push_back({count, group, index});
  }
  // Of equal ones the older group, then the first of the plan.
  std::stable_sort(overlaps.begin(), overlaps.end(), [](const Overlap& a, const Overlap& b) {
    return std::tie(b.members, a.group, a.index) < std::tie(a.members, b.group, b.index);
  });
  std::vector<GroupId> successors(planned.size());
  std::set<uint32_t> taken;
  for (const Overlap& overlap : overlaps) {
    if (successors[overlap.index] != GroupId() || !taken.insert(overlap.group).second) continue;
    successors[overlap.index] = GroupId(overlap.group);
  }
  return successors;
}

Regrouped GroupRoster::Regroup(const std::vector<std::vector<NodeId>>& planned,
                               Transaction& change) {
  const std::vector<GroupId> successors = Successors(planned);
  std::map<NodeId, GroupId> before;
  std::vector<GroupId> ended;
  for (const proto::Group& group : state_.view().groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    for (const uint64_t member : group.members()) before[NodeId(member)] = GroupId(group.id());
    if (std::find(successors.begin(), successors.end(), GroupId(group.id())) == successors.end()) {
      ended.push_back(GroupId(group.id()));
    }
  }
  for (const GroupId id : ended) {
    change.Edit(*FindGroup(state_.view(), id)).set_state(proto::Group::DONE);
  }
  Regrouped regrouped;
  for (size_t index = 0; index < planned.size(); ++index) {
    const GroupId id = successors[index];
    bool is_changed = false;
    for (const NodeId worker : planned[index]) {
      const auto known = before.find(worker);
      if (known == before.end()) newcomers_[worker] = {.group = id};
      is_changed = is_changed || known == before.end() || known->second != id;
      if (known == before.end()) {
        ++regrouped.placed;
      } else if (known->second != id) {
        ++regrouped.moved;
      }
      change.Edit(*FindNode(state_.view(), worker)).clear_home_group();
    }
    if (id == GroupId()) {
      AddGroup(planned[index], change);
      continue;
    }
    const proto::Group& group = *FindGroup(state_.view(), id);
    if (is_changed || group.members_size() != static_cast<int>(planned[index].size())) {
      SetMembers(group, planned[index], change);
    }
  }
  return regrouped;
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

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/group_adjustments.h"

#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {

const proto::Group* GroupAdjustments::FindActive(GroupId id) const {
  const proto::Group* group = FindGroup(state_.view(), id);
  return group != nullptr && group->state() == proto::Group::ACTIVE ? group : nullptr;
}

void GroupAdjustments::Move(absl::Time now, NodeId worker, GroupId to,
                            const std::string& evidence) {
  Transaction change(state_);
  proto::Node& node = change.Edit(*FindNode(state_.view(), worker));
  const GroupId from = groups_.roster().TakeOut(worker, change);
  if (node.home_group() == 0) node.set_home_group(from.value());
  const proto::Group* group = FindActive(to);
  if (group != nullptr && group->members_size() >= static_cast<int>(kGroupMembersMax)) {
    group = nullptr;
  }
  if (group == nullptr || GroupId(node.home_group()) == to) node.clear_home_group();
  WorkerMoved moved{.worker = node.name(), .from = from, .evidence = evidence};
  if (group != nullptr) {
    groups_.roster().AddMember(*group, worker, change);
    moved.to = to;
    moved.generation = group->generation();
  }
  change.Add(moved);
  if (group == nullptr) groups_.late_placement().Place(now, change);
  change.Commit();
}

void GroupAdjustments::Evict(NodeId worker, const std::string& evidence) {
  const proto::ClusterView& view = state_.view();
  if (FindActiveGroupOf(view, worker) == nullptr) return;
  Transaction change(state_);
  proto::Node& node = change.Edit(*FindNode(view, worker));
  const GroupId from = groups_.roster().TakeOut(worker, change);
  if (node.home_group() == 0) node.set_home_group(from.value());
  node.set_standby(absl::StrCat("evicted from group ", from.value(), ": ", evidence));
  const proto::Group* group = FindActive(from);
  change.Add(WorkerEvicted{.worker = node.name(),
                           .from = from,
                           .generation = group == nullptr ? 0 : group->generation(),
                           .evidence = evidence});
  change.Commit();
}

void GroupAdjustments::SetShares(GroupId id, const std::vector<uint32_t>& shares,
                                 const std::string& evidence) {
  const proto::Group* group = FindActive(id);
  if (group == nullptr ||
      (!shares.empty() && static_cast<int>(shares.size()) != group->members_size())) {
    return;
  }
  Transaction change(state_);
  change.Edit(*group).mutable_shares()->Assign(shares.begin(), shares.end());
  change.Add(SharesChanged{.group = id, .shares = shares, .evidence = evidence});
  change.Commit();
}

void GroupAdjustments::SetMinimumMembers(GroupId id, uint32_t minimum, absl::Duration grace,
                                         const std::string& evidence) {
  const proto::Group* group = FindActive(id);
  if (group == nullptr) return;
  Transaction change(state_);
  proto::Group& edited = change.Edit(*group);
  edited.set_minimum_members(minimum);
  edited.set_grace_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(grace)));
  change.Add(MinimumMembersChanged{.group = id,
                                   .minimum = minimum,
                                   .members = group->members_size(),
                                   .grace = grace,
                                   .evidence = evidence});
  change.Commit();
}

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/away_workers.h"

#include <algorithm>
#include <utility>

#include "common/cluster/limits.h"

namespace covey::scheduler {

void AwayWorkers::OnHeartbeat(absl::Time now, NodeId worker,
                              const proto::HeartbeatRequest& request) {
  Erase(worker);
  if (!request.has_away()) return;
  const absl::Time until = now + std::min(absl::Milliseconds(request.away().left_ms()), kAwayMax);
  away_[worker] = {.reason = request.away().reason().substr(0, kNameBytesMax), .until = until};
  Rank(worker, until);
}

void AwayWorkers::Erase(NodeId worker) {
  const auto found = away_.find(worker);
  if (found == away_.end()) return;
  Unrank(worker, found->second.until);
  away_.erase(found);
}

template <typename Edit>
void AwayWorkers::EditRanking(NodeId worker, const Edit& edit) {
  const auto found = group_of_.find(worker);
  if (found == group_of_.end()) return;
  const GroupId group = found->second;
  Ranking<NodeId>& members = members_[group];
  if (!members.empty()) groups_.erase({members.begin()->first, group});
  edit(members);
  if (!members.empty()) groups_.insert({members.begin()->first, group});
}

void AwayWorkers::Rank(NodeId worker, absl::Time until) {
  EditRanking(worker, [&](Ranking<NodeId>& members) { members.insert({until, worker}); });
}

void AwayWorkers::Unrank(NodeId worker, absl::Time until) {
  EditRanking(worker, [&](Ranking<NodeId>& members) { members.erase({until, worker}); });
}

void AwayWorkers::Refresh() {
  if (epoch_ == state_.epoch()) return;
  epoch_ = state_.epoch();
  group_of_.clear();
  members_.clear();
  groups_.clear();
  for (const proto::Group& group : state_.view().groups()) {
    if (group.state() != proto::Group::ACTIVE) continue;
    for (const uint64_t member : group.members()) group_of_[NodeId(member)] = GroupId(group.id());
  }
  for (const auto& [worker, away] : away_) Rank(worker, away.until);
}

std::optional<proto::Away> AwayWorkers::AwayOf(absl::Time now, NodeId worker) const {
  const auto found = away_.find(worker);
  if (found == away_.end() || now >= found->second.until) return std::nullopt;
  proto::Away away;
  away.set_reason(found->second.reason);
  away.set_left_ms(static_cast<uint32_t>(absl::ToInt64Milliseconds(found->second.until - now)));
  return away;
}

bool AwayWorkers::IsAway(absl::Time now, NodeId worker) const {
  return AwayOf(now, worker).has_value();
}

void AwayWorkers::Tell(absl::Time now, NodeId worker, proto::HeartbeatReply& reply) {
  if (away_.empty()) return;
  Refresh();
  const auto own = group_of_.find(worker);
  if (own == group_of_.end()) return;
  const auto tell = [&](NodeId node) {
    auto away = AwayOf(now, node);
    if (!away) return;
    proto::AwayWorker& told = *reply.add_away();
    told.set_node(node.value());
    *told.mutable_away() = *std::move(away);
  };
  size_t told = 0;
  for (const auto& [until, member] : members_[own->second]) {
    if (told++ == kAwayToldMax) break;
    tell(member);
  }
  for (const auto& [until, group] : groups_) {
    if (group == own->second) continue;
    tell(members_[group].begin()->second);
    break;
  }
}

void AwayWorkers::FillStatus(absl::Time now, proto::StatusReply& reply) const {
  for (proto::NodeStatus& status : *reply.mutable_nodes()) {
    if (auto away = AwayOf(now, NodeId(status.node()))) *status.mutable_away() = *std::move(away);
  }
}

}  // namespace covey::scheduler

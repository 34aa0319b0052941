// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/away_workers.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/cluster/limits.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {

void AwayWorkers::OnHeartbeat(absl::Time now, NodeId worker,
                              const proto::HeartbeatRequest& request) {
  if (!request.has_away()) {
    away_.erase(worker);
    return;
  }
  const absl::Duration left = absl::Milliseconds(request.away().left_ms());
  away_[worker] = {.reason = request.away().reason().substr(0, kNameBytesMax),
                   .until = now + std::min(left, kAwayMax)};
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

void AwayWorkers::Tell(absl::Time now, NodeId worker, proto::HeartbeatReply& reply) const {
  if (away_.empty()) return;
  const proto::Group* const own = FindActiveGroupOf(state_.view(), worker);
  if (own == nullptr) return;
  const auto told = [](NodeId node, proto::Away away) {
    proto::AwayWorker worker;
    worker.set_node(node.value());
    *worker.mutable_away() = std::move(away);
    return worker;
  };
  std::vector<proto::AwayWorker> members;
  for (const uint64_t member : own->members()) {
    const NodeId node(member);
    if (auto away = AwayOf(now, node)) members.push_back(told(node, *std::move(away)));
  }
  std::stable_sort(members.begin(), members.end(),
                   [](const proto::AwayWorker& a, const proto::AwayWorker& b) {
                     return a.away().left_ms() > b.away().left_ms();
                   });
  if (members.size() > kAwayToldMax) members.resize(kAwayToldMax);
  reply.mutable_away()->Assign(members.begin(), members.end());
  NodeId other;
  absl::Time other_until = now;
  for (const auto& [node, away] : away_) {
    if (away.until <= other_until) continue;
    const proto::Group* const group = FindActiveGroupOf(state_.view(), node);
    if (group == nullptr || group == own) continue;
    other = node;
    other_until = away.until;
  }
  if (auto away = AwayOf(now, other)) *reply.add_away() = told(other, *std::move(away));
}

void AwayWorkers::FillStatus(absl::Time now, proto::StatusReply& reply) const {
  for (proto::NodeStatus& status : *reply.mutable_nodes()) {
    if (auto away = AwayOf(now, NodeId(status.node()))) *status.mutable_away() = *std::move(away);
  }
}

}  // namespace covey::scheduler

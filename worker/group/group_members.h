// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/away_worker.h"
#include "common/cluster/ids.h"
#include "common/cluster/topology.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "worker/group/away_workers.h"
#include "worker/group/group_messages.h"
#include "worker/group/group_round.h"
#include "worker/group/plan_follower.h"

namespace covey::worker {

// The members of one round of a group by rank: their addresses, their names in messages to people,
// and which ways to them the transport knows. Actor-confined. Deterministic.
class GroupMembers {
 public:
  // `plan` outlives it; names and endpoints are those of its view. `patience_after_away`: as
  // AwayWorkers.
  GroupMembers(const PlanFollower& plan, absl::Duration patience_after_away)
      : plan_(plan), away_(patience_after_away) {}

  // This worker is one of them.
  void Set(std::vector<NodeId> nodes);
  void Clear() { Replace({}); }

  const std::vector<NodeId>& nodes() const { return nodes_; }
  uint32_t size() const { return static_cast<uint32_t>(nodes_.size()); }
  // Of this worker.
  uint32_t rank() const { return rank_; }
  Address AddressOf(uint32_t rank) const { return {nodes_[rank], 0}; }
  // Where the members are, as their labels say.
  std::vector<TopologyPath> LabeledPaths() const;
  std::string NameOf(uint32_t rank) const { return view().NameOf(nodes_[rank]); }
  // As AwayWorkers::Set; they need not be members.
  void SetAway(absl::Time now, const std::vector<AwayWorker>& away);
  const AwayWorkers& away() const { return away_; }
  // No wait for members is over its deadline before; InfinitePast(): deadlines hold as they are. So
  // it is, too, once a member has departed.
  absl::Time DeadlineFloor() const;
  // "nothing from worker-1 and worker-2, which has left".
  std::string NothingFrom(std::vector<uint32_t> ranks) const;
  // Some member has left the cluster in order.
  bool HasDeparted() const;

  // The message comes from the present process of this member.
  bool IsFrom(const Message& message, uint32_t rank) const;
  // The other member that the message comes from; nullopt: none.
  std::optional<uint32_t> SenderOf(const Message& message) const;
  // The newest attempt of the round's generation that messages of members speak of; 0 = none does.
  uint32_t NewestAttempt(const std::deque<Message>& messages, const GroupRound& round) const;

  // Makes `message` one to this member, and lets the transport know the way.
  void SetReceiver(uint32_t rank, Message& message, Outbox& outbox);
  // Ways that the transport knows follow the newest view. Those to nodes that are gone are closed.
  void RefreshRoutes(Outbox& outbox);
  // Drops the connection with what waits in it. The next message opens it again.
  void Disconnect(NodeId node, Outbox& outbox);
  // Tells each other member that this round ends.
  void TellEnd(const GroupRound& round, RoundEnd end, absl::string_view reason, Outbox& outbox);

 private:
  const ClusterView& view() const { return plan_.view(); }
  void EnsureRoute(uint32_t rank, Outbox& outbox);
  void Replace(std::vector<NodeId> nodes);

  const PlanFollower& plan_;
  std::vector<NodeId> nodes_;
  uint32_t rank_ = 0;
  AwayWorkers away_;
  absl::Time away_floor_ = absl::InfinitePast();  // of the members
  std::map<NodeId, std::string> routes_;          // endpoints that the transport knows
};

}  // namespace covey::worker

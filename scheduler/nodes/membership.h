// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/failure_detector.h"
#include "common/cluster/ids.h"
#include "common/net/message.h"
#include "proto/process.pb.h"
#include "proto/scheduler.pb.h"
#include "scheduler/groups/groups.h"
#include "scheduler/nodes/membership_options.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// The nodes of the job: registration, heartbeats, departure. Tells Groups of each change.
//
//                     ┌── Leave ─────────────────────▶ LEFT
//   Register ─▶ ALIVE ┤
//                     └── DeclareDead, OnProbeReply ─▶ DEAD
//
// A departed node never returns: its process registers again, as another node. It stays listed for
// a while (departed_nodes.h).
//
// Invariants:
//  1. One (role, rank) has at most one ALIVE node; node ids are never reused.
//  2. Each change is one transaction, together with what it means for the groups.
//
// Actor-confined, deterministic. `state` and `groups` outlive it.
class Membership {
 public:
  Membership(const MembershipOptions& options, ClusterState& state, Groups& groups)
      : options_(options), state_(state), groups_(groups) {}

  // To be called once, before anything else. Nodes that a recovered state calls ALIVE have
  // `restart_grace` to send a heartbeat. Returns when those that have sent none are declared dead.
  absl::Time Start(absl::Time now);

  struct Registration {
    NodeId node;
    uint32_t rank = 0;
    // The departed node of the same rank, which the new node replaces; 0 = none.
    NodeId replaces = NodeId();
    // False: the process had registered before, so nothing has changed.
    bool is_new = false;
  };
  // Idempotent per incarnation. INVALID_ARGUMENT: malformed, or for another job. ALREADY_EXISTS: a
  // live node holds the rank. FAILED_PRECONDITION: the job is full. ABORTED: this incarnation has
  // departed. RESOURCE_EXHAUSTED: too many nodes.
  absl::StatusOr<Registration> Register(absl::Time now, const proto::RegisterRequest& request,
                                        Incarnation incarnation);

  // ABORTED, with the newer incarnation or epoch: the sender is not an ALIVE node under this
  // incarnation.
  absl::Status CheckSender(NodeId node, Incarnation incarnation) const;

  // True for a node that left in order under this incarnation.
  bool HasLeft(NodeId node, Incarnation incarnation) const;

  // The reply to a registration is sent now, after its record became durable. The silence of the
  // node counts from here.
  void OnRegistrationAnswered(absl::Time now, NodeId node);
  // The reply says that its record could not be written. The node is registered once one is, and
  // does not know it before it has asked again. Its silence counts some time after this refusal.
  void OnRegistrationRefused(absl::Time now, NodeId node);

  // What an ALIVE server said last of its load, in its registration or a heartbeat: empty, when
  // neither has come to this scheduler. Null: no such node is ALIVE.
  const proto::ServerLoad* LoadOf(NodeId server) const;

  // Precondition of OnHeartbeat and Leave: CheckSender is OK.
  void OnHeartbeat(absl::Time now, NodeId node, const proto::HeartbeatRequest& request);
  void Leave(absl::Time now, NodeId node, const std::string& reason);
  // FAILED_PRECONDITION: the node wants to leave by the view of epoch `known`, and a newer view has
  // it in the chain of a shard. It has to follow that view before it leaves.
  absl::Status CheckLeave(NodeId node, Epoch known) const;

  struct Death {
    NodeId node;
    // Until then the node may still serve the shards that it alone holds.
    absl::Time lease_end = absl::InfinitePast();
  };
  // Declares those nodes dead that have been silent for too long.
  std::vector<Death> DeclareDead(absl::Time now);
  // When DeclareDead has to be called at the latest; never later than the next death.
  absl::Time NextDeath() const { return next_death_; }
  // Two signs that a node may be gone: the connection on which it watched the view broke; or a
  // process asks for the rank it holds, and two of its heartbeats are missing. Each returns the
  // ProbeRequest that checks it, addressed to the prober. Nothing when the node is not ALIVE,
  // listens nowhere, or is being probed.
  std::optional<Message> OnConnectionLost(const proto::ConnectionLost& lost);
  std::optional<Message> OnRankTaken(absl::Time now, const proto::RegisterRequest& refused);
  // The reply to a probe. REFUSED is death, unless the node was heard since this probe was sent;
  // any other result proves nothing. Only where nothing but this machine's own kernel can have
  // refused, it also proves that the process is gone, so that its lease does not matter.
  std::optional<Death> OnProbeReply(absl::Time now, const Message& reply);
  // The scheduler itself stood still for this long, which does not count as silence of any node.
  void DiscountPause(absl::Duration pause);

  // Whether tables can be placed: every expected server has been ALIVE, and at least one server is
  // ALIVE and does not drain. Otherwise UNAVAILABLE, which names the missing servers.
  absl::Status CheckServers() const;
  void FillStatus(absl::Time now, proto::StatusReply& reply) const;

  // When a lease that is granted now has expired by any clock: a server's clock may be slower than
  // the scheduler's by one part in 16. `now` when there are no leases.
  absl::Time LeaseEnd(absl::Time now) const { return now + options_.lease + options_.lease / 16; }

 private:
  struct Health {
    FailureDetector detector;
    absl::Time lease_end;
    // The request of the probe under way; 0: none, or the node has sent a message since.
    uint64_t probe = 0;
    proto::Progress progress = {};
    proto::ServerLoad load = {};
  };

  Health NewHealth(absl::Time now, absl::Duration grace) const;
  // Forgets what was heard of the node, except its load: its silence counts from now + grace.
  void RestartDetection(absl::Time now, NodeId node, absl::Duration grace);
  // The health of this node is known, or has changed.
  void Expect(const Health& health) {
    next_death_ = std::min(next_death_, health.detector.DeadAt());
  }
  std::optional<Message> Probe(const proto::Node& node);
  void Declare(absl::Time now, NodeId id, const std::string& evidence);
  // Adds a node to the view.
  const proto::Node& AddNode(const proto::RegisterRequest& request, Incarnation incarnation,
                             uint32_t rank, Transaction& change) const;
  // The node is no longer ALIVE. `reason` follows "left" or "declared dead at epoch N".
  void Depart(absl::Time now, const proto::Node& node, proto::Node::State state, std::string reason,
              Transaction& change);
  // Takes them out of the view. `departed` is in growing order of id.
  void Forget(const std::vector<NodeId>& departed, Transaction& change);
  // RESOURCE_EXHAUSTED: with one more node, and without these, too many bytes are to be told to
  // others.
  absl::Status CheckBytes(const proto::RegisterRequest& request,
                          const std::vector<NodeId>& without) const;
  // The node is new, or tells more of itself than before.
  void CountBytes(const proto::Node& node);

  const MembershipOptions options_;
  ClusterState& state_;
  Groups& groups_;
  std::map<NodeId, Health> health_;  // of ALIVE nodes
  // Not later than the DeadAt() of any of them: a beat puts off that of one node, which is not
  // searched for at each.
  absl::Time next_death_ = absl::InfiniteFuture();
  uint64_t last_probe_ = 0;  // the request id of the newest one
  // Of each node of the view, as it was registered or departed, and their sum.
  std::map<NodeId, size_t> bytes_;
  size_t all_bytes_ = 0;
};

}  // namespace covey::scheduler

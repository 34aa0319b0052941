#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/failure_detector.h"
#include "common/cluster/ids.h"
#include "proto/log.pb.h"
#include "proto/probe.pb.h"
#include "proto/scheduler.pb.h"
#include "scheduler/config.h"
#include "scheduler/groups/groups.h"

namespace covey::scheduler {

// Who is a node of the job: registration, heartbeats, death, leaving. Tells Groups of it.
//
//                     ┌── Leave ──────▶ LEFT
//   Register ─▶ ALIVE ┤
//                     └── FindDead, Refused ───▶ DEAD
//
// A departed node stays listed and never returns: its process registers anew, as another node.
//
// Invariants:
//  1. One (role, rank) has at most one ALIVE node; node ids are never reused.
//  2. Each change raises the epoch by one, with what it means for the groups.
//
// Edits the view in `state`, which outlives it, as `groups` does. Actor-confined, deterministic.
class Membership {
 public:
  // A change, for people: what and on what evidence.
  using Decision = std::string;

  Membership(const Config& config, proto::LogRecord& state, Groups& groups)
      : config_(config), state_(state), groups_(groups) {}

  // Once, before anything else: nodes that a recovered state calls ALIVE have `restart_grace` to be
  // heard.
  void Start(absl::Time now);

  struct Registration {
    NodeId node;
    uint32_t rank = 0;
    // Departed holder of the same rank, whose work the new node takes over; 0 = none.
    NodeId replaces = NodeId();
    Decision decision = "";  // empty: it had been registered before, nothing changed
  };
  // Idempotent per incarnation. INVALID_ARGUMENT: malformed, or for another job. ALREADY_EXISTS: a
  // live node holds the rank. FAILED_PRECONDITION: the job is full. ABORTED: this incarnation has
  // departed. RESOURCE_EXHAUSTED: too many nodes.
  absl::StatusOr<Registration> Register(absl::Time now, const proto::RegisterRequest& request,
                                        Incarnation incarnation);

  // ABORTED, with what is newer: the sender is not an ALIVE node under this incarnation.
  absl::Status CheckSender(NodeId node, Incarnation incarnation) const;

  // True for a node that left in order under this incarnation.
  bool HasLeft(NodeId node, Incarnation incarnation) const;

  // The answer to its registration leaves only now, after the disk: its silence counts from here.
  void Answered(absl::Time now, NodeId node);

  // Precondition for the next two: CheckSender is OK.
  void Heartbeat(absl::Time now, NodeId node, const proto::HeartbeatRequest& request);
  Decision Leave(absl::Time now, NodeId node, const std::string& reason);
  // FAILED_PRECONDITION: the node says goodbye by the view of epoch `known`, and a newer one has it
  // in the chain of a shard. It has to know that before it goes.
  absl::Status CheckGoodbye(NodeId node, Epoch known) const;

  struct Death {
    NodeId node;
    Decision decision;
    // Until then it may still serve what it alone holds.
    absl::Time lease_end = absl::InfinitePast();
  };
  // Declares those dead that have been silent for too long.
  std::vector<Death> FindDead(absl::Time now);
  // When FindDead has to be called at the latest.
  absl::Time NextDeath() const;
  // The connection on which a node watched the view broke: the probe that tells whether the node is
  // gone. Nothing when it is no ALIVE node, listens nowhere, or is being probed.
  std::optional<proto::ProbeRequest> ConnectionLost(const proto::ConnectionLost& lost);
  // What a probe found. REFUSED is death, unless the node was heard since the probe was asked for;
  // everything else proves nothing.
  std::optional<Death> TakeProbeReply(absl::Time now, const proto::ProbeReply& reply);
  // The scheduler itself stood still for so long: nobody's silence counts.
  void Excuse(absl::Duration pause);

  // Whether tables can be placed: every expected server has been ALIVE, and some are and stay. Else
  // UNAVAILABLE naming those that are missed.
  absl::Status CheckServers() const;
  void FillStatus(absl::Time now, proto::StatusReply& reply) const;

  // When a lease that is given now has ended by any clock: clocks of servers may be slower than the
  // scheduler's by one part in 16. `now` when there are no leases.
  absl::Time LeaseEnd(absl::Time now) const { return now + config_.lease + config_.lease / 16; }

 private:
  struct Health {
    FailureDetector detector;
    absl::Time lease_end;
    bool is_probed = false;  // and was not heard since
    proto::Progress progress = {};
    proto::ServerLoad load = {};
  };

  Health NewHealth(absl::Time now, absl::Duration grace) const;
  Death Declare(absl::Time now, NodeId id, const std::string& evidence);
  // What this means for its group; "" = nothing.
  std::string Depart(absl::Time now, proto::Node& node, proto::Node::State state,
                     std::string reason);
  void ForgetDepartedClients();

  const Config& config_;
  proto::LogRecord& state_;
  Groups& groups_;
  std::map<NodeId, Health> health_;  // of ALIVE nodes
};

}  // namespace covey::scheduler

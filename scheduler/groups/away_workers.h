// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Which workers are away: their programs are silent on purpose, and say so in heartbeats. Each
// heartbeat replaces what the one before it has said; a worker that says nothing, or whose time is
// over, is back. Not in the log: after a restart the next heartbeats say it again.
//
// Actor-confined, deterministic. `state` outlives it.
class AwayWorkers {
 public:
  explicit AwayWorkers(const ClusterState& state) : state_(state) {}

  // Of an ALIVE worker.
  void OnHeartbeat(absl::Time now, NodeId worker, const proto::HeartbeatRequest& request);
  // A node is no longer ALIVE.
  void OnDeparture(NodeId node) { away_.erase(node); }

  bool IsAway(absl::Time now, NodeId worker) const;
  // Whom `worker` may have to wait for (HeartbeatReply.away).
  void Tell(absl::Time now, NodeId worker, proto::HeartbeatReply& reply) const;
  void FillStatus(absl::Time now, proto::StatusReply& reply) const;

 private:
  struct Away {
    std::string reason;
    absl::Time until;
  };

  // Nothing when it is not away.
  std::optional<proto::Away> AwayOf(absl::Time now, NodeId worker) const;

  const ClusterState& state_;
  std::map<NodeId, Away> away_;
};

}  // namespace covey::scheduler

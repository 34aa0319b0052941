// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// The updates that would be lost if all servers failed now: those that servers have applied and the
// newest complete snapshot lacks.
//
// It is as new as the heartbeats of servers. After a shard was re-initialized, its table counts too
// few until it has made up for its lost updates.
//
// Actor-confined, deterministic. `state` outlives it.
class UpdatesAtRisk {
 public:
  // `wall_clock_ahead`: as SnapshotsOptions.
  UpdatesAtRisk(const ClusterState& state, absl::Duration wall_clock_ahead)
      : state_(state), wall_clock_ahead_(wall_clock_ahead) {}

  // Once, before anything else.
  void Start(absl::Time now) { started_ = now; }
  // A server's heartbeat.
  void OnLoad(NodeId server, const proto::ServerLoad& load);
  void OnDeparture(NodeId server);

  // Summed over all shards of the present tables. Cost: the number of tables.
  uint64_t Count() const;
  // The time since the newest snapshot was cut: none of the updates is older. 0 = no update is at
  // risk, or there is no snapshot.
  absl::Duration Age(absl::Time now) const;

 private:
  const ClusterState& state_;
  const absl::Duration wall_clock_ahead_;
  absl::Time started_;
  // The updates of each table, in the shards of which a server is the head, as it last reported;
  // and their sums over the servers.
  std::map<NodeId, std::map<uint32_t, uint64_t>> reported_;
  std::map<uint32_t, uint64_t> applied_;
};

}  // namespace covey::scheduler

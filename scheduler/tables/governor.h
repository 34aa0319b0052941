// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/tables/tables.h"

namespace covey::scheduler {

// Follows, in the heartbeats of servers, how asynchronous each table is. A table whose momentum can
// no longer be held at its target gets a buffered contract (momentum_governor.h has the rule).
// There is no way back: while a table is buffered, nothing shows whether its groups would be even
// again.
//
// Actor-confined, deterministic. `state` and `tables` outlive it. What servers have reported is
// forgotten at a restart of the scheduler, and reported again within a heartbeat.
class Governor {
 public:
  struct Options {
    // False: contracts stay as they are.
    bool contract_fallback = true;
  };

  Governor(const Options& options, const ClusterState& state, Tables& tables)
      : options_(options), state_(state), tables_(tables) {}

  // The load of a server, from its heartbeat.
  void OnHeartbeat(NodeId server, const proto::ServerLoad& load);
  // A node is no longer ALIVE.
  void OnDeparture(NodeId node);

 private:
  // Of a table in the view.
  void Judge(TableId id);

  const Options options_;
  const ClusterState& state_;
  Tables& tables_;
  // The newest report of each server about each table.
  std::map<TableId, std::map<NodeId, proto::TableAsynchrony>> reports_;
};

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>

#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/tables/tables.h"

namespace covey::scheduler {

// Follows, in the heartbeats of servers, how asynchronous each table is. A table whose momentum can
// no longer be held at its target gets a buffered contract (momentum_governor.h has the rule). The
// change is not undone: while a table is buffered, nothing shows whether its groups would be
// equally fast again.
//
// Actor-confined, deterministic. `state` and `tables` outlive it. Reports are lost at a restart of
// the scheduler, and repeated within a heartbeat.
class ContractFallback {
 public:
  struct Options {
    // False: contracts stay as they are.
    bool enabled = true;
  };

  ContractFallback(const Options& options, const ClusterState& state, Tables& tables)
      : options_(options), state_(state), tables_(tables) {}

  // From the next heartbeat on.
  void SetOptions(const Options& options) { options_ = options; }

  // The load of a server, from its heartbeat.
  void OnHeartbeat(NodeId server, const proto::ServerLoad& load);
  // A node is no longer ALIVE.
  void OnDeparture(NodeId node);

 private:
  // Judges one table of the view.
  void Judge(TableId id);

  Options options_;
  const ClusterState& state_;
  Tables& tables_;
  // The newest report of each server about each table.
  std::map<TableId, std::map<NodeId, proto::TableAsynchrony>> reports_;
};

}  // namespace covey::scheduler

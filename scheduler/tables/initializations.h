// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Which node gives tables their initial values (Initializer.GIVEN), all tables of one request
// alike:
//
//                   a node asks              it says that all shards hold them
//   waiting, node 0 ───────────▶ waiting ──────────────────────────────────────▶ initialized
//                                 │   ▲
//                                 └───┘ another node asks, and the first one is gone; or a shard
// was
//                                       lost (LostShards). The epoch is a new one, and servers take
//                                       no values of an older one.
//
// Each change is a transaction of its own. Actor-confined, deterministic. `state` outlives it.
class Initializations {
 public:
  explicit Initializations(ClusterState& state) : state_(state) {}

  // The epoch under which `node` gives the initial values of those of the tables that wait for
  // them; Epoch() when none does any more. Idempotent. Errors as InitializeTablesReply.
  absl::StatusOr<Epoch> OnRequest(NodeId node, const proto::InitializeTablesRequest& request);

 private:
  void End(NodeId node, const std::vector<const proto::Table*>& tables);

  ClusterState& state_;
};

}  // namespace covey::scheduler

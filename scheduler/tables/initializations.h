// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/placement/chains.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Which call of which node gives tables their initial values (Initializer.GIVEN), all tables of one
// request alike:
//
//               a call asks                   it says that all shards hold them
//   no call ──────────────────▶ call c gives ───────────────────────────────────▶ initialized
//      ▲                          │      ▲ │
//      └──────────────────────────┘      └─┘
//            c gives up        another call asks, and the node
//                              of c is gone; or a shard is lost
//
// Each arrow but the last begins a new epoch, and servers take no values of an older one. So the
// values of one epoch are those of one call. A call that asks while another one gives, of the same
// node or not, is refused until that has ended.
//
// Each change is a transaction of its own. Actor-confined, deterministic. `state` and `chains`
// outlive it.
class Initializations {
 public:
  Initializations(ClusterState& state, const Chains& chains) : state_(state), chains_(chains) {}

  // The epoch under which a call of `node` gives the initial values of those of the tables that
  // wait for them; Epoch() when none does any more, or the call has given up. Idempotent. Errors as
  // InitializeTablesReply.
  absl::StatusOr<Epoch> OnRequest(NodeId node, const proto::InitializeTablesRequest& request);

 private:
  using Waiting = std::vector<const proto::Table*>;

  // Every shard holds the values, and none has been lost meanwhile.
  absl::Status End(NodeId node, const Waiting& tables);
  void GiveUp(NodeId node, uint64_t call);

  ClusterState& state_;
  const Chains& chains_;
};

}  // namespace covey::scheduler

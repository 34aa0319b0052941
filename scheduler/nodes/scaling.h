// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
#include "scheduler/groups/groups.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// How many servers and workers the job should have, and which of them are asked to leave. A drain
// sets Node.draining and does nothing else: Chains move the shards of a draining server elsewhere,
// Groups plan a draining worker out of its group, and then the process ends by itself.
//
// Actor-confined, deterministic. `state` and `groups` outlive it.
class Scaling {
 public:
  // `has_store`: snapshots can be made.
  Scaling(bool has_store, ClusterState& state, Groups& groups)
      : has_store_(has_store), state_(state), groups_(groups) {}

  // Asks a node to leave, or, with `cancel`, to stay after all; `why` is the evidence, for users.
  // Returns the epoch from which on the change is in force at the latest. Idempotent. NOT_FOUND: no
  // server or worker of this name is alive. FAILED_PRECONDITION: it is the only server that does
  // not drain, and has shards. But when it must leave in any case, and there is a store, the job
  // closes (ClusterView.closing).
  absl::StatusOr<Epoch> Drain(const proto::DrainRequest& request, absl::string_view why);

  // Records how many nodes are wanted, and drains the surplus, highest rank first. Draining nodes
  // go on draining. Returns as Drain. Idempotent. INVALID_ARGUMENT: 0, or more than a job can have.
  absl::StatusOr<Epoch> Scale(const proto::ScaleRequest& request, absl::string_view why);

  // Whether the scheduler may end, `waited` after it was asked to. Where there is a store, servers
  // that leave need it until their content is elsewhere, or in a snapshot.
  bool SchedulerMayEnd(absl::Duration waited) const;

  // The job does not close after all when a server stays. To be called at least every half second.
  void Tick();

 private:
  void SetDraining(const proto::Node& node, bool draining, Transaction& change);

  const bool has_store_;
  ClusterState& state_;
  Groups& groups_;
};

}  // namespace covey::scheduler

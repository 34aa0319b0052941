// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "scheduler/groups/group_roster.h"
#include "scheduler/groups/groups_options.h"
#include "scheduler/groups/worker_placement.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Gives a group to each ALIVE worker that has none although groups exist: workers that register
// late, come back, or whose group has ended. PlaceLateWorkers has the rule. A worker that drains or
// was evicted is not placed.
//
// Actor-confined, deterministic. `state` and `roster` outlive it. The waiting times of workers
// start from 0 after a restart of the scheduler.
class LatePlacement {
 public:
  LatePlacement(const GroupsOptions& options, const ClusterState& state, GroupRoster& roster)
      : options_(options), state_(state), roster_(roster) {}

  // From the next call on.
  void SetOptions(const GroupsOptions& options) { options_ = options; }

  // Places workers where that is possible now; the other ones stand by, which is recorded as an
  // event. Without JobSpec::elastic nothing happens, and with JobSpec::plans_groups GroupReplans
  // places them.
  void Place(absl::Time now, Transaction& change);
  // A worker is no longer ALIVE.
  void OnDeparture(NodeId worker) { late_since_.erase(worker); }

 private:
  // ALIVE workers that wait for a group.
  std::vector<LateWorker> FindLate(absl::Time now);

  GroupsOptions options_;
  const ClusterState& state_;
  GroupRoster& roster_;
  std::map<NodeId, absl::Time> late_since_;
};

}  // namespace covey::scheduler

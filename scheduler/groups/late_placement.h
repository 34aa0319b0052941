// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "scheduler/groups/away_workers.h"
#include "scheduler/groups/group_roster.h"
#include "scheduler/groups/groups_options.h"
#include "scheduler/groups/worker_placement.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Gives a group to each ALIVE worker that has none although groups exist: workers that register
// late, come back, or whose group has ended. PlaceLateWorkers has the rule. A worker that drains or
// was evicted is not placed, and neither is one that is away: a program that was told with an error
// that its group has ended takes no steps any more, and its new group would wait for it.
//
// Actor-confined, deterministic. The constructor's references outlive it. The waiting times of
// workers start from 0 after a restart of the scheduler.
class LatePlacement {
 public:
  LatePlacement(const GroupsOptions& options, const ClusterState& state, const AwayWorkers& away,
                GroupRoster& roster)
      : options_(options), state_(state), away_(away), roster_(roster) {}

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
  const AwayWorkers& away_;
  GroupRoster& roster_;
  std::map<NodeId, absl::Time> late_since_;
};

}  // namespace covey::scheduler

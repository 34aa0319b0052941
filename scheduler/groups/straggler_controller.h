// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/straggler_action.h"
#include "common/grouping/stragglers/straggler_ladder.h"
#include "common/grouping/stragglers/straggler_options.h"
#include "proto/scheduler.pb.h"
#include "scheduler/groups/away_workers.h"
#include "scheduler/groups/group_adjustments.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Feeds the straggler ladder from heartbeats, and carries out what the ladder decides.
//
// While a member of a group is away, the ladder decides nothing about that group: reports wait
// until the member is back. Its own reports do not count the time (worker/hybrid/step_timer.h).
//
// Actor-confined, deterministic. The constructor's references outlive it. The ladder's measurements
// are lost at a restart of the scheduler; its decisions are in the view.
class StragglerController {
 public:
  StragglerController(const StragglerOptions& options, ClusterState& state, const AwayWorkers& away,
                      GroupAdjustments& adjustments)
      : state_(state), away_(away), adjustments_(adjustments), ladder_(options) {}

  // As StragglerLadder::SetOptions.
  void SetOptions(const StragglerOptions& options) { ladder_.SetOptions(options); }

  // The progress of a worker, from its heartbeat. A heartbeat that repeats the last report has no
  // effect.
  void OnHeartbeat(absl::Time now, NodeId worker, const proto::Progress& progress);
  // Brings back evicted workers whose probation is over, and that are not away: a program that was
  // told with an error that it is left out takes no steps any more.
  void Tick(absl::Time now);
  // A node is no longer ALIVE.
  void OnDeparture(NodeId node);

  void FillStatus(proto::StatusReply& reply) const;

 private:
  // Reads the groups in force from the view, when its epoch has changed.
  void Refresh();
  bool HasAwayMember(absl::Time now, const GroupInForce& group) const;
  void CarryOut(absl::Time now, const StragglerAction& action);

  ClusterState& state_;
  const AwayWorkers& away_;
  GroupAdjustments& adjustments_;
  StragglerLadder ladder_;
  std::map<NodeId, proto::Progress> last_;
  std::optional<Epoch> epoch_;  // of the view from which the following fields are
  std::vector<GroupInForce> in_force_;
  std::map<NodeId, size_t> group_of_;  // index into in_force_
  std::vector<GroupMember> evicted_;
};

}  // namespace covey::scheduler

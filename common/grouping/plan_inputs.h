// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/grouping/group_planner.h"
#include "common/grouping/throughput_model.h"
#include "proto/scheduler.pb.h"
#include "proto/view.pb.h"

namespace covey {

// Everything that groups are planned by. Whoever plans by equal inputs gets equal groups: the
// scheduler, which measures them, and `covey plan`, which asks it for them. A value.
struct PlanInputs {
  std::vector<PlannedWorker> workers;
  ThroughputParameters model;
  // Where the inputs come from, one line each. For users.
  std::vector<std::string> sources;

  // With which PlanGroups and Replan are to be called. Groups that wait for each other at each step
  // are not faster than one: then no more are made than their members need (kGroupMembersMax).
  GroupPlanOptions options() const;
};

// Labels and ranks are those of the nodes of a view, so they do not travel again.
void SetPlanInputs(const PlanInputs& inputs, proto::PlanInputs& message);
// INVALID_ARGUMENT: a worker is not in the view, or twice; a number is negative or not finite;
// there is no worker. The inputs come from a scheduler.
absl::StatusOr<PlanInputs> ReadPlanInputs(const proto::PlanInputs& message,
                                          const proto::ClusterView& view);

}  // namespace covey

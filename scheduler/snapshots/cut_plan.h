// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/view.pb.h"
#include "scheduler/snapshots/step_forecast.h"

namespace covey::scheduler {

// The last step of each ACTIVE group before a cut that lies at `at`: far enough ahead that all
// servers know of it before a group comes there. Where groups wait for each other (bsp, ssp, local)
// it is one step for all, since a group that waits for a step which is held could never come to its
// own; under local it ends a round.
//
// UNAVAILABLE: some worker has not reported its progress yet; names its group. Pure.
absl::StatusOr<std::vector<proto::CutStep>> PlanCut(const proto::ClusterView& view,
                                                    const StepForecast& forecast, absl::Time at);

}  // namespace covey::scheduler

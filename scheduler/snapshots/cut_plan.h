// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/view.pb.h"
#include "scheduler/snapshots/step_forecast.h"

namespace covey::scheduler {

// Whether a cut may be put off until error feedback is flushed.
enum class Flush { kAwaited, kIgnored };

struct CutPlan {
  std::vector<proto::CutStep> steps;  // in growing order of group
  bool awaits_flush = false;          // it was put off
};

// The last step of each ACTIVE group before a cut that lies at `at`: far enough ahead that all
// servers know of it before a group comes there. Where groups wait for each other (bsp, ssp, local)
// it is one step for all, since a group that waits for a step which is held could never come to its
// own; under local it ends a round. Where that step may be one at which error feedback is flushed
// (ClusterView.feedback_flush_steps), it is: under bsp and ssp, with gradients in a lossy format,
// unless the job closes and no later step is certain to come. Groups that go their own ways come to
// such steps at different times, and the pushes of the others would have to be held meanwhile.
//
// UNAVAILABLE: some worker has not reported its progress yet; names its group. Pure.
absl::StatusOr<CutPlan> PlanCut(const proto::ClusterView& view, const StepForecast& forecast,
                                absl::Time at, Flush flush);

}  // namespace covey::scheduler

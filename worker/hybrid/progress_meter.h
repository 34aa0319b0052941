// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "client/step_times.h"
#include "common/cluster/ids.h"
#include "common/metrics/duration_histogram.h"
#include "worker/progress.h"

namespace covey::worker {

// What a program says of one step.
struct StepReport {
  uint64_t samples = 0;
  // Nothing: a step on no examples.
  std::optional<double> loss;
  // Measured by the program's thread: since the report before, not waiting and waiting.
  absl::Duration compute = absl::ZeroDuration();
  absl::Duration wait = absl::ZeroDuration();
  // Parts of these: reading and preparing samples; waiting for servers, not for the group.
  absl::Duration input = absl::ZeroDuration();
  absl::Duration servers = absl::ZeroDuration();
};

// Turns finished steps into rates. Actor-confined. Deterministic.
class ProgressMeter {
 public:
  // One step is done. True when an interval is over: then the caller gives the interval's staleness
  // with SetStaleness.
  bool AddStep(absl::Time now, const StepReport& report);
  void SetStaleness(double staleness) { progress_.staleness = staleness; }
  void SetStepsAside(uint64_t steps) { progress_.steps_aside = steps; }
  void SetRecoveries(uint64_t recoveries, absl::Duration last) {
    progress_.recoveries = recoveries;
    progress_.recovery_seconds = absl::ToDoubleSeconds(last);
  }

  const Progress& progress() const { return progress_; }
  // Where the time of all steps but the first went, added up.
  client::StepTimes seconds() const;
  // The durations of these steps.
  const DurationHistogram& step_durations() const { return step_durations_; }

 private:
  Progress progress_;
  DurationHistogram step_durations_{DurationHistogram::kWide};
  StepReport all_;  // the sum of all reports but the first, without their losses
  // Of the interval under way.
  absl::Time start_;
  uint64_t steps_ = 0;
  StepReport sum_;
  absl::Duration slowest_ = absl::ZeroDuration();
};

}  // namespace covey::worker

#pragma once

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace covey::worker {

// How far a worker has come, as heartbeats and progress lines report it.
struct Progress {
  uint64_t step = 0;
  // Of this worker, in all steps.
  uint64_t samples = 0;
  // Of the newest step on examples; 0 until there was one.
  double loss = 0;
  // The following are of the last full interval of about a second; 0 during the first.
  double samples_per_second = 0;
  // Per step: time of the program's own, and time spent waiting for values.
  double compute_seconds = 0;
  double wait_seconds = 0;
  // The program's own time of the slowest step: hiccups that the mean hides.
  double slowest_seconds = 0;
  double samples_per_step = 0;
  // Updates by others between the values a gradient was computed on and its application; the mean.
  double staleness = 0;
  // Steps, so far, that went on without this worker's gradient because it was late.
  uint64_t steps_aside = 0;
  // Steps, so far, that were done again because a member had died; and how long the last one took
  // from then on.
  uint64_t recoveries = 0;
  double recovery_seconds = 0;
};

// What a program says of one step.
struct StepReport {
  uint64_t samples = 0;
  // Nothing: a step on no examples.
  std::optional<double> loss;
  // Measured by the program's thread: since the report before, not waiting and waiting.
  absl::Duration compute = absl::ZeroDuration();
  absl::Duration wait = absl::ZeroDuration();
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

 private:
  Progress progress_;
  // Of the interval under way.
  absl::Time start_;
  uint64_t steps_ = 0;
  uint64_t samples_ = 0;
  absl::Duration compute_ = absl::ZeroDuration();
  absl::Duration wait_ = absl::ZeroDuration();
  absl::Duration slowest_ = absl::ZeroDuration();
};

}  // namespace covey::worker

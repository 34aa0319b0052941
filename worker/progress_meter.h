#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace covey::worker {

// How far a worker has come, as heartbeats and progress lines report it.
struct Progress {
  uint64_t step = 0;
  // Of this worker, in all steps.
  uint64_t samples = 0;
  // Of the last step that was reported.
  double loss = 0;
  // Over the last full interval of about a second; 0 during the first.
  double samples_per_second = 0;
  // Updates by others between the values a gradient was computed on and its application; the mean
  // over that interval.
  double staleness = 0;
};

// Turns finished steps into rates. Actor-confined. Deterministic.
class ProgressMeter {
 public:
  // One step over `samples` examples is done. True when an interval is over: then the caller gives
  // the interval's staleness with SetStaleness.
  bool AddStep(absl::Time now, uint64_t samples, double loss) {
    if (progress_.step == 0) interval_start_ = now;
    ++progress_.step;
    progress_.samples += samples;
    progress_.loss = loss;
    const absl::Duration passed = now - interval_start_;
    if (passed < absl::Seconds(1)) return false;
    progress_.samples_per_second =
        static_cast<double>(progress_.samples - interval_samples_) / absl::ToDoubleSeconds(passed);
    interval_start_ = now;
    interval_samples_ = progress_.samples;
    return true;
  }
  void SetStaleness(double staleness) { progress_.staleness = staleness; }

  const Progress& progress() const { return progress_; }

 private:
  Progress progress_;
  absl::Time interval_start_;
  uint64_t interval_samples_ = 0;
};

}  // namespace covey::worker

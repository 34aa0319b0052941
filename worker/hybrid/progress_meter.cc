// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/progress_meter.h"

#include <algorithm>

namespace covey::worker {

bool ProgressMeter::AddStep(absl::Time now, const StepReport& report) {
  // The first report begins the first interval: what came before it is start-up.
  const bool first = progress_.step == 0;
  ++progress_.step;
  progress_.samples += report.samples;
  if (report.loss.has_value()) progress_.loss = *report.loss;
  if (first) {
    start_ = now;
    return false;
  }
  ++steps_;
  samples_ += report.samples;
  compute_ += report.compute;
  wait_ += report.wait;
  slowest_ = std::max(slowest_, report.compute);
  const absl::Duration passed = now - start_;
  if (passed < absl::Seconds(1)) return false;
  const double steps = static_cast<double>(steps_);
  progress_.samples_per_second = static_cast<double>(samples_) / absl::ToDoubleSeconds(passed);
  progress_.samples_per_step = static_cast<double>(samples_) / steps;
  progress_.compute_seconds = absl::ToDoubleSeconds(compute_) / steps;
  progress_.wait_seconds = absl::ToDoubleSeconds(wait_) / steps;
  progress_.slowest_seconds = absl::ToDoubleSeconds(slowest_);
  start_ = now;
  steps_ = 0;
  samples_ = 0;
  compute_ = absl::ZeroDuration();
  wait_ = absl::ZeroDuration();
  slowest_ = absl::ZeroDuration();
  return true;
}

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/progress_meter.h"

#include <algorithm>

namespace covey::worker {
namespace {

void AddTo(StepReport& sum, const StepReport& report) {
  sum.samples += report.samples;
  sum.compute += report.compute;
  sum.wait += report.wait;
  sum.input += report.input;
  sum.servers += report.servers;
}

client::StepTimes PerStep(const StepReport& sum, uint64_t steps) {
  const auto seconds = [steps](absl::Duration time) {
    return absl::ToDoubleSeconds(time) / static_cast<double>(steps);
  };
  return {.computation = seconds(sum.compute - sum.input),
          .input = seconds(sum.input),
          .group = seconds(sum.wait - sum.servers),
          .servers = seconds(sum.servers)};
}

}  // namespace

client::StepTimes ProgressMeter::seconds() const { return PerStep(all_, 1); }

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
  AddTo(all_, report);
  step_durations_.Record(report.compute + report.wait);
  progress_.step_times = PerStep(all_, progress_.step - 1);
  AddTo(sum_, report);
  ++steps_;
  slowest_ = std::max(slowest_, report.compute);
  const absl::Duration passed = now - start_;
  if (passed < absl::Seconds(1)) return false;
  const double samples = static_cast<double>(sum_.samples);
  progress_.samples_per_second = samples / absl::ToDoubleSeconds(passed);
  progress_.samples_per_step = samples / static_cast<double>(steps_);
  const client::StepTimes times = PerStep(sum_, steps_);
  progress_.compute_seconds = times.computation + times.input;
  progress_.input_seconds = times.input;
  progress_.wait_seconds = times.group + times.servers;
  progress_.group_seconds = times.group;
  progress_.servers_seconds = times.servers;
  progress_.slowest_seconds = absl::ToDoubleSeconds(slowest_);
  start_ = now;
  steps_ = 0;
  sum_ = StepReport();
  slowest_ = absl::ZeroDuration();
  return true;
}

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/step_times.h"

#include <cmath>
#include <numbers>

namespace covey::cli {
namespace {

// A normal variable with mean 0 and variance 1 (Box and Muller 1958); always takes two draws.
double Normal(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  return radius * std::cos(2 * std::numbers::pi * random.Uniform());
}

}  // namespace

StepTimes::StepTimes(const StepTimeOptions& options, uint32_t nodes, const Random& random)
    : options_(options),
      random_(random),
      ideal_(options.recorded.empty() ? options.median
                                      : absl::Seconds(options.recorded.MeanSeconds())),
      slowness_(nodes, 1) {
  for (uint32_t node = 0; node < nodes; ++node) streams_.push_back(random.Split(node));
  for (const SlowNode& slow : options.slow_nodes) slowness_[slow.rank] = slow.factor;
}

absl::Duration StepTimes::Next(uint32_t node, uint32_t group, uint64_t step) {
  if (!options_.recorded.empty()) {
    return absl::Seconds(RecordedSeconds(node, group, step) * slowness_[node]);
  }
  return options_.median * (NextFactor(streams_[node]) * slowness_[node]);
}

double StepTimes::NextFactor(Random& random) const {
  double factor = 1;
  if (options_.noise > 0) factor = std::exp(options_.noise * Normal(random));
  if (options_.hiccup_rate > 0 && random.Chance(options_.hiccup_rate)) {
    factor *= options_.hiccup_factor;
  }
  return factor;
}

double StepTimes::RecordedSeconds(uint32_t node, uint32_t group, uint64_t step) const {
  const auto& workers = options_.recorded.workers;
  const std::vector<double>& steps = workers[node % workers.size()];
  Random row = random_.Split(node / workers.size()).Split(group).Split(step);
  return steps[row.Below(steps.size())];
}

}  // namespace covey::cli

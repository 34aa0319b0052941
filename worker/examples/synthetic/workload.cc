// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/workload.h"

#include <cmath>
#include <numbers>

#include "common/base/random.h"

namespace covey::synthetic {
namespace {

// Has mean 1, because E[exp(s z)] = exp(s^2 / 2) for a standard normal z (Box and Muller 1958).
double Noise(const Options& options, uint32_t rank, uint64_t step) {
  if (options.step_noise == 0) return 1;
  Random random = Random(options.seed).Split(rank).Split(step);
  const double radius = std::sqrt(-2 * std::log(1 - random.Uniform()));
  const double normal = radius * std::cos(2 * std::numbers::pi * random.Uniform());
  return std::exp(options.step_noise * normal - options.step_noise * options.step_noise / 2);
}

}  // namespace

absl::Duration ComputeTime(const Options& options, uint32_t rank, uint64_t step, double samples) {
  absl::Duration time =
      absl::Milliseconds(options.milliseconds_per_sample * samples) * Noise(options, rank, step);
  for (const Options::Slow& slow : options.slow) {
    if (slow.rank == rank && step >= slow.first_step) time *= slow.factor;
  }
  for (const Options::Hang& hang : options.hangs) {
    if (hang.rank == rank && hang.step == step) time += hang.duration;
  }
  return time;
}

}  // namespace covey::synthetic

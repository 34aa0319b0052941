// SPDX-License-Identifier: Apache-2.0
#include "worker/gradient_noise.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "common/base/check.h"

namespace covey::worker {

double GradientNoise::scale() const {
  if (variance <= 0) return 0;
  if (signal <= 0) return std::numeric_limits<double>::infinity();
  return variance / signal;
}

double GradientNoise::RateGain(uint64_t base_batch, uint64_t batch) const {
  COVEY_CHECK(base_batch > 0 && batch > 0);
  const double square = variance / static_cast<double>(batch) + signal;
  if (square <= 0) return 1;
  return (variance / static_cast<double>(base_batch) + signal) / square;
}

NoiseEstimator::NoiseEstimator(double window) : keep_(std::exp(-1 / window)) {
  COVEY_CHECK(window >= 1);
}

void NoiseEstimator::Add(const GradientNorms& norms) {
  if (norms.starts_over) weight_ = signal_ = variance_ = 0;
  if (norms.members < 2 || !std::isfinite(norms.member_square) ||
      !std::isfinite(norms.group_square)) {
    return;
  }
  const double members = norms.members;
  const double signal = (members * norms.group_square - norms.member_square) / (members - 1);
  const double variance = static_cast<double>(norms.samples) *
                          (norms.member_square - norms.group_square) / (members - 1);
  weight_ = keep_ * weight_ + (1 - keep_);
  signal_ = keep_ * signal_ + (1 - keep_) * signal;
  variance_ = keep_ * variance_ + (1 - keep_) * variance;
}

std::optional<GradientNoise> NoiseEstimator::noise() const {
  if (weight_ <= 0) return std::nullopt;
  return GradientNoise{.signal = std::max(0.0, signal_ / weight_),
                       .variance = std::max(0.0, variance_ / weight_)};
}

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/failure_detector.h"

#include <algorithm>
#include <cmath>

namespace covey {
namespace {

// The estimate of p averages over about this many beats: enough to be steady, few enough to follow
// a network that gets worse within half a minute.
constexpr double kMemoryBeats = 64;
// With this bound, even on the worst network a dead node is recognized after 27 beats.
constexpr double kLossMax = 0.5;
constexpr double kLossMin = 0.001;
// One long gap counts for at most this many missed beats, so that a pause is not mistaken for a
// lossy network.
constexpr double kMissedMax = 32;

double Phi(double beats, double loss) {
  return -beats * std::log10(std::clamp(loss, kLossMin, kLossMax));
}

}  // namespace

void FailureDetector::Beat(absl::Time now) {
  if (now >= last_) {
    const double beats = absl::FDivDuration(now - last_, options_.beat);
    const double missed = std::clamp(std::round(beats) - 1, 0.0, kMissedMax);
    // `missed` samples of 1, then one of 0, each with weight 1 / kMemoryBeats.
    const double keep = 1 - 1 / kMemoryBeats;
    loss_ = (1 - (1 - loss_) * std::pow(keep, missed)) * keep;
  }
  last_ = now;
}

absl::Duration FailureDetector::Silence(absl::Time now) const {
  return std::max(absl::ZeroDuration(), now - last_);
}

double FailureDetector::Suspicion(absl::Time now) const {
  return Phi(absl::FDivDuration(Silence(now), options_.beat), loss_);
}

absl::Time FailureDetector::DeadAt() const {
  const double beats = options_.threshold / Phi(1, loss_);
  return last_ + std::max(options_.silence_min, options_.beat * beats);
}

}  // namespace covey

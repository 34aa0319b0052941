// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/loss_detector.h"

#include <algorithm>

namespace covey::worker {
namespace {

// A silence of this many times what a collective usually takes is worth a query; it costs little.
constexpr double kUsualTimes = 4;
constexpr double kSmoothing = 0.1;

}  // namespace

void LossDetector::CollectiveTook(absl::Duration time) {
  usual_seconds_ += kSmoothing * (absl::ToDoubleSeconds(time) - usual_seconds_);
}

absl::Duration LossDetector::Silence() const {
  return std::clamp(absl::Seconds(kUsualTimes * usual_seconds_), kSilenceMin, kSilenceMax);
}

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_tuner.h"

#include <utility>

#include "common/base/check.h"

namespace covey::worker {

StepTuner::StepTuner(std::vector<size_t> sizes, Point first)
    : sizes_(std::move(sizes)), first_(std::move(first)), point_(first_), center_(first_) {
  COVEY_CHECK(first_.size() == sizes_.size());
  for (size_t axis = 0; axis < sizes_.size(); ++axis) COVEY_CHECK(first_[axis] < sizes_[axis]);
}

void StepTuner::Add(double rate) {
  COVEY_CHECK(!settled_);
  Rates& rates = rates_[point_];
  rates.sum += rate;
  ++rates.count;
  ++samples_;
  if (samples_ < kTunerLineSamplesMax && FindOnLine()) return;
  point_ = Best();
  settled_ = samples_ >= kTunerSamplesMax || rates_[point_].count >= kTunerRepetitions;
}

bool StepTuner::FindOnLine() {
  while (axes_without_gain_ < sizes_.size()) {
    Point candidate = center_;
    for (size_t value = 0; value < sizes_[axis_]; ++value) {
      candidate[axis_] = value;
      if (rates_.contains(candidate)) continue;
      point_ = std::move(candidate);
      return true;
    }
    const Point best = Best();
    // The best point's line along this axis has been measured.
    axes_without_gain_ = best == center_ ? axes_without_gain_ + 1 : 1;
    center_ = best;
    axis_ = (axis_ + 1) % sizes_.size();
  }
  return false;
}

double StepTuner::RateAt(const Point& point) const {
  const auto found = rates_.find(point);
  if (found == rates_.end()) return 0;
  return found->second.sum / static_cast<double>(found->second.count);
}

StepTuner::Point StepTuner::Best() const {
  COVEY_CHECK(!rates_.empty());
  Point best = rates_.begin()->first;
  for (const auto& [point, rates] : rates_) {
    if (RateAt(point) > RateAt(best)) best = point;
  }
  return best;
}

}  // namespace covey::worker

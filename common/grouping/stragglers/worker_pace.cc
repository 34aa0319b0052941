// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/worker_pace.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace covey {

void WorkerPace::Add(const PaceReport& report) {
  if (!(report.compute_seconds > 0) || !(report.samples_per_step > 0) ||
      !std::isfinite(report.compute_seconds) || !std::isfinite(report.samples_per_step)) {
    return;
  }
  if (skipped_ < options_.warm_up_reports) {
    ++skipped_;
    return;
  }
  if (report.steps > steps_ && report.steps_aside >= steps_aside_ && reports_ > 0) {
    aside_ = std::min(1.0, static_cast<double>(report.steps_aside - steps_aside_) /
                               static_cast<double>(report.steps - steps_));
  }
  const double steps =
      report.steps > steps_ && reports_ > 0 ? static_cast<double>(report.steps - steps_) : 1;
  steps_ = report.steps;
  steps_aside_ = report.steps_aside;

  const double pace = report.compute_seconds / report.samples_per_step;
  Interval now = {.seconds_per_sample = pace};
  if (!window_.empty()) {
    // Only the beginning of a lasting slowness counts as a hiccup.
    const double usual = UsualPace();
    const double limit = options_.hiccup_ratio * usual;
    const double slowest = report.slowest_seconds / report.samples_per_step;
    const double cost = (slowest - usual) / (usual * steps);
    if (pace > limit) now.slow_in_a_row = window_.back().slow_in_a_row + 1;
    now.hiccup = now.slow_in_a_row > 0 ? now.slow_in_a_row == 1
                                       : slowest > limit && cost >= options_.hiccup_cost_min;
  }
  window_.push_back(now);
  if (window_.size() > options_.window_reports) window_.pop_front();
  if (now.slow_in_a_row > 0 && now.slow_in_a_row < options_.pace_reports) return;

  ++reports_;
  if (reports_ <= options_.reports_min) pace_ = last_ = UsualPace();
  // A single report changes the pace by a bounded amount.
  const double heard =
      std::clamp(pace, pace_ / options_.hiccup_ratio, pace_ * options_.hiccup_ratio);
  // A plain mean at first (after a median, which no hiccup moves), then exponential.
  const double weight = std::max(options_.smoothing, 1 / static_cast<double>(reports_));
  // Differences of consecutive reports contain the noise but not the trend.
  const double difference = (heard - last_) / pace_;
  variance_ += weight * (difference * difference / 2 - variance_);
  last_ = heard;
  if (reports_ > options_.reports_min) pace_ += weight * (heard - pace_);

  if (std::abs(report.samples_per_step - samples_) > options_.new_samples_ratio * samples_) {
    step_reports_ = 0;
  }
  ++step_reports_;
  const double step_weight = std::max(options_.smoothing, 1 / static_cast<double>(step_reports_));
  if (step_reports_ == 1) {
    samples_ = report.samples_per_step;
    step_seconds_ = heard * samples_;
  } else {
    samples_ += step_weight * (report.samples_per_step - samples_);
    step_seconds_ += step_weight * (heard * report.samples_per_step - step_seconds_);
  }
}

double WorkerPace::error() const {
  // Variance of an exponential mean: that of one report times w / (2 - w).
  return std::sqrt(variance_ * options_.smoothing / (2 - options_.smoothing));
}

size_t WorkerPace::hiccups() const {
  return static_cast<size_t>(std::count_if(
      window_.begin(), window_.end(), [](const Interval& interval) { return interval.hiccup; }));
}

double WorkerPace::UsualPace() const {
  std::vector<double> paces;
  for (const Interval& interval : window_) paces.push_back(interval.seconds_per_sample);
  const auto middle = paces.begin() + static_cast<ptrdiff_t>((paces.size() - 1) / 2);
  std::nth_element(paces.begin(), middle, paces.end());
  return *middle;
}

}  // namespace covey

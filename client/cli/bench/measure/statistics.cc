// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "common/base/check.h"
#include "common/base/random.h"

namespace covey::cli {
namespace {

constexpr int kSamples = 2000;
constexpr uint64_t kSeed = 20260101;
constexpr double kTail = 0.025;

}  // namespace

double Quantile(std::vector<double> values, double fraction) {
  COVEY_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const double position = fraction * static_cast<double>(values.size() - 1);
  return values[static_cast<size_t>(std::lround(position))];
}

std::vector<double> RatioPerRepetition(const std::vector<double>& ours,
                                       const std::vector<double>& other) {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(ours.size(), other.size()); ++i) {
    ratios.push_back(ours[i] / other[i]);
  }
  return ratios;
}

Interval MedianInterval(const std::vector<double>& values) {
  COVEY_CHECK(!values.empty());
  Random random(kSeed);
  std::vector<double> medians, sample(values.size());
  for (int i = 0; i < kSamples; ++i) {
    for (double& drawn : sample) drawn = values[random.Below(values.size())];
    medians.push_back(Quantile(sample, 0.5));
  }
  return {.low = Quantile(medians, kTail), .high = Quantile(medians, 1 - kTail)};
}

}  // namespace covey::cli

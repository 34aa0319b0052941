// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/rate_series.h"

#include <algorithm>

namespace covey::cli {

void RateSeries::Add(absl::Time at, double count) { points_.push_back({at, count}); }

std::vector<double> RateSeries::Pieces(absl::Duration piece) const {
  std::vector<double> rates;
  size_t first = 0;
  for (size_t i = 1; i < points_.size(); ++i) {
    const absl::Duration time = points_[i].at - points_[first].at;
    if (time < piece || time <= absl::ZeroDuration()) continue;
    rates.push_back((points_[i].count - points_[first].count) / absl::ToDoubleSeconds(time));
    first = i;
  }
  return rates;
}

double RateSeries::Median(absl::Duration piece) const { return MedianOf(Pieces(piece)); }

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

}  // namespace covey::cli

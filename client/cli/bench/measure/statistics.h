// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

namespace covey::cli {

// Statistics of repetitions. Pure: equal arguments give equal results on every machine.

// The value below which `fraction` of the sorted `values` lie; the nearest measured one.
// Precondition: not empty, 0 <= fraction <= 1.
double Quantile(std::vector<double> values, double fraction);

// ours[i] / other[i], for each repetition that both have. Repetitions of one index were measured
// right after one another, so a machine that is slow for a while is slow in both.
// Precondition: no zero in `other`.
std::vector<double> RatioPerRepetition(const std::vector<double>& ours,
                                       const std::vector<double>& other);

struct Interval {
  double low = 0;
  double high = 0;
};

// Where the median would lie if the same repetitions were drawn again: the middle 95 % of the
// medians of 2,000 samples of the same size, drawn with replacement and a fixed seed (bootstrap,
// Efron 1979). With fewer than 5 values it is no wider than their range, and says little.
// Precondition: not empty.
Interval MedianInterval(const std::vector<double>& values);

}  // namespace covey::cli

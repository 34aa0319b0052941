// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/time/time.h"

namespace covey::cli {

// How fast something grows that tells its count now and then: robust against moments in which the
// machine is busy with something else. Pure.
class RateSeries {
 public:
  // `at` never falls, nor does `count`.
  void Add(absl::Time at, double count);

  // Per second, of each stretch between two counts that lasts `piece` or a little longer.
  std::vector<double> Pieces(absl::Duration piece) const;
  // The median of these; 0 without any.
  double Median(absl::Duration piece) const;

 private:
  struct Point {
    absl::Time at;
    double count;
  };
  std::vector<Point> points_;
};

// Of the two in the middle the mean; 0 of none.
double MedianOf(std::vector<double> values);

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/time/time.h"

namespace covey::cli {

// The growth rate of a count that is reported from time to time. Robust against moments in which
// the machine is busy with other work. Pure.
class RateSeries {
 public:
  // Neither `at` nor `count` ever falls.
  void Add(absl::Time at, double count);

  // The rate per second of each stretch between two counts that lasts `piece` or a little longer.
  std::vector<double> Pieces(absl::Duration piece) const;
  // The median of Pieces; 0 without any.
  double Median(absl::Duration piece) const;

 private:
  struct Point {
    absl::Time at;
    double count;
  };
  std::vector<Point> points_;
};

// The median; with an even number of values the mean of the two middle ones; 0 of none.
double MedianOf(std::vector<double> values);

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <vector>

namespace covey::worker {

// Searches a grid for the point with the highest rate. It names one point at a time, and is told
// the rate that was measured there:
//
//   1. The points on a line through the best point so far, along one axis after the other, until no
//      axis has a better one, or kTunerLineSamplesMax rates are known.
//   2. The best point again, until the best one has been measured kTunerRepetitions times. So a
//      rate that was too high by chance is found out.
//
// It is over after kTunerSamplesMax rates at most. Pure: the same rates give the same points.
class StepTuner {
 public:
  // A value on each axis, from 0.
  using Point = std::vector<size_t>;

  // `sizes`: values of each axis, at least 1. `first` is measured first.
  StepTuner(std::vector<size_t> sizes, Point first);

  bool settled() const { return settled_; }
  // The point to be measured; once settled, the best.
  const Point& point() const { return point_; }
  // The rate at point(). Precondition: not settled.
  void Add(double rate);

  // Rates told so far.
  size_t samples() const { return samples_; }
  // Means of the rates at the first point and at point(); 0 = none is known.
  double first_rate() const { return RateAt(first_); }
  double rate() const { return RateAt(point_); }

 private:
  struct Rates {
    double sum = 0;
    size_t count = 0;
  };
  double RateAt(const Point& point) const;
  // Of equal ones the one that comes first in the order of points.
  Point Best() const;
  // Moves on along the lines; false: there is nothing left to measure on them.
  bool FindOnLine();

  const std::vector<size_t> sizes_;
  const Point first_;
  std::map<Point, Rates> rates_;
  size_t samples_ = 0;
  Point point_;
  Point center_;                  // all lines go through it
  size_t axis_ = 0;               // of the present line
  size_t axes_without_gain_ = 0;  // since the center moved
  bool settled_ = false;
};

inline constexpr size_t kTunerSamplesMax = 30;
inline constexpr size_t kTunerLineSamplesMax = 24;
inline constexpr size_t kTunerRepetitions = 3;

}  // namespace covey::worker

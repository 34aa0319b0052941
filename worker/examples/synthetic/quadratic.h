// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace covey::synthetic {

// A loss with a known optimum: half the squared distance of the values from it.
//
// Element i of tensor t has its optimum at Optimum(t, i). Worker r of a group of n sees it shifted
// by spread * (2 r - (n - 1)) / n, which cancels over the group. So gradient descent of rate h from
// 0 is at optimum * (1 - (1 - h)^k) after k updates, and anywhere else if a worker was left out.
//
// Pure.
class Quadratic {
 public:
  struct Options {
    double spread = 0;
    uint32_t rank = 0;  // In its group.
    uint32_t size = 1;  // Of the group.
  };
  explicit Quadratic(const Options& options);

  // In [1, 2).
  static float Optimum(size_t tensor, size_t element);
  // Writes the gradient at `values` to `gradient`, which has the same size.
  void WriteGradient(size_t tensor, std::span<const float> values, std::span<float> gradient) const;
  // The largest distance from the optimum over all elements, relative to the optimum: 1 at the
  // start. Infinite when a value is NaN.
  static double Distance(size_t tensor, std::span<const float> values);

 private:
  const float shift_;
};

}  // namespace covey::synthetic

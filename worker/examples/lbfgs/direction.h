// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace covey::lbfgs {

// What minimizers on servers and in one process have in common, so that they take the same steps.
struct Settings {
  uint64_t history = 10;     // pairs of differences that are kept
  uint64_t iterations = 50;  // at most
  // Ends once the gradient's norm is this part of the first one's.
  double tolerance = 1e-6;
  double l2 = 1e-3;  // coefficient of half the square of the weights' norm
};

// A step is taken when the objective falls by this part of what the slope promises (Armijo);
// otherwise it is halved, at most kHalvingsMax times. On a convex objective with an L2 term, every
// step that is taken has positive curvature.
inline constexpr double kSufficientDecrease = 1e-4;
inline constexpr int kHalvingsMax = 30;

// Inner products of the vectors of a history, in the order s_1 … s_k, y_1 … y_k, g: differences of
// weights, of gradients, the oldest first, and the gradient.
using InnerProducts = std::vector<std::vector<double>>;

// The direction of L-BFGS, -H g, as coefficients of these vectors: the recursion in two loops
// (Nocedal 1980) done with inner products alone (Chen et al. 2014). Precondition: 2k + 1 rows and
// columns, and <s_i, y_i> > 0. Pure.
std::vector<double> DirectionCoefficients(const InnerProducts& products);

}  // namespace covey::lbfgs

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "worker/examples/lbfgs/direction.h"
#include "worker/examples/lbfgs/problem.h"

namespace covey::lbfgs {

struct Minimum {
  std::vector<double> weights;
  double objective = 0;      // mean loss, and the L2 term
  double gradient_norm = 0;  // of the objective
  uint64_t iterations = 0;
  uint64_t evaluations = 0;
};

// L-BFGS as textbooks write it, in double and with all vectors at hand: what the minimizer on
// servers is compared with. `problem` has all samples. Pure.
Minimum MinimizeHere(const LogisticProblem& problem, const ProblemSize& size,
                     const Settings& settings);

}  // namespace covey::lbfgs

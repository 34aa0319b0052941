// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/workload.h"

namespace covey::sim {

// Workers request training examples, train them for a while, and report them, until all passes are
// finished. Workers die; sometimes one returns its examples. In a share of the seeds they are
// members of a group, and meet at the end of each pass. In half of the seeds some are slow, and all
// return what the scheduler recalls. `violations` outlives the workload.
std::unique_ptr<Workload> MakeWorkWorkload(Random random, Violations& violations);

}  // namespace covey::sim

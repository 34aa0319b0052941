// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/workload.h"

namespace covey::sim {

// Programs create tables that wait for initial values. Some give them, each its own number, and die
// on the way; all read the tables, and push gradients of zero. Whatever happens, every value that
// anybody reads is the number of one program, the same in all tables, and the optimizer's state the
// one that came with it. `violations` outlives the workload.
std::unique_ptr<Workload> MakeInitializeWorkload(Random random, Violations& violations);

}  // namespace covey::sim

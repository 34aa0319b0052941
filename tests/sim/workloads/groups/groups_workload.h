// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/workload.h"

namespace covey::sim {

// Groups of real workers train: every member submits every tensor of every step. Each step of each
// group is recognizable in the values, so StalenessTruth knows what was applied. GroupResults knows
// what members were told. `violations` outlives the workload.
std::unique_ptr<Workload> MakeGroupsWorkload(Random random, Violations& violations);

}  // namespace covey::sim

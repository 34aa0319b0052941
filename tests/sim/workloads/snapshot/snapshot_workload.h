// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/workload.h"

namespace covey::sim {

// Groups train examples while the scheduler takes snapshots, by time and on request. Then
// everything is killed at once, and a job with other numbers of servers and groups continues the
// newest snapshot; it finishes the examples. `violations` outlives the workload.
std::unique_ptr<Workload> MakeSnapshotWorkload(Random random, Violations& violations);

// The same, and groups also push each step to a sparse table.
std::unique_ptr<Workload> MakeSnapshotSparseWorkload(Random random, Violations& violations);

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/workload.h"

namespace covey::sim {

// Clients push to random shards and whole tables, pull at times, and crash. At the end an auditor
// pulls everything. Each push owns one element of each shard, so the values show which pushes they
// contain. `violations` outlives the workload.
std::unique_ptr<Workload> MakeCountingWorkload(Random random, Violations& violations);
// The same with a sparse table: each push owns a column (counting_rows.h).
std::unique_ptr<Workload> MakeSparseWorkload(Random random, Violations& violations);
// The same with a table of vectors: each push is a function (counting_functions.h).
std::unique_ptr<Workload> MakeFunctionsWorkload(Random random, Violations& violations);

// The same with a table that has a norm gate: some pushes are wild (counting_plan.h).
std::unique_ptr<Workload> MakeGatedWorkload(Random random, Violations& violations);

// The same with a table whose optimizer has momentum (counting_momentum.h).
std::unique_ptr<Workload> MakeMomentumWorkload(Random random, Violations& violations);

}  // namespace covey::sim

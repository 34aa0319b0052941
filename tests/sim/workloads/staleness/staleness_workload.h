// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/strings/string_view.h"
#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/workload.h"

namespace covey::sim {

// Groups of one member train at different speeds. Some join late, some leave early; the table's
// contract may be switched meanwhile. Each step is recognizable in the values, so StalenessTruth
// knows which steps each reader has seen. `kind`: of the first contract; empty = drawn.
// `violations` outlives the workload.
std::unique_ptr<Workload> MakeStalenessWorkload(Random random, absl::string_view kind,
                                                Violations& violations);

}  // namespace covey::sim

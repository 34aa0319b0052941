// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/strings/string_view.h"
#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/workloads/workload.h"

namespace covey::sim {

// Creates the workload of that name from random draws. Precondition: IsWorkload(name). `violations`
// outlives it.
std::unique_ptr<Workload> MakeWorkload(absl::string_view name, Random random,
                                       Violations& violations);

}  // namespace covey::sim

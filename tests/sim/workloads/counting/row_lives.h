// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <span>
#include <string>

#include "tests/sim/workloads/counting/counting_ledger.h"
#include "tests/sim/workloads/counting/counting_plan.h"

namespace covey::sim {

// Checks a row of a sparse table at the end of a run; the row may have been made late, or evicted
// and made again. Returns why the row is wrong; empty when it is right. `pushed`: the slots whose
// pushes hold the row's key. A row is right that holds
//  - nothing of other pushes, and each of its own once;
//  - all pushes from some version on, and none of earlier ones: a key that was evicted begins
//    again, and nothing of its earlier row is left;
//  - where only the number of updates decides on admission, all but the first of them.
// Pure.
std::string WhyRowIsWrong(const CountingPlan& plan, const CountingLedger& ledger,
                          const ShardHistory& history, std::span<const float> row,
                          const std::set<uint64_t>& pushed);

}  // namespace covey::sim

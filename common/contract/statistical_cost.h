// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/contract/contract.h"

namespace covey {

// What more groups cost under a contract. The planner of groups chooses their number by it. Pure.

// Progress per sample falls as groups^-penalty: the penalty. 0 under bsp, where groups are one big
// batch. Measured on quadratics, sixteen groups against one: buffered and local take 1.2 times the
// samples (0.07), and pushes that are applied on arrival twice as many (0.25).
double StatisticalPenalty(const Contract& contract);

// Whether groups wait for each other: at each step (bsp, ssp), or at the end of each round (local
// without a quorum). Then the slowest sets the pace of all.
bool KeepsGroupsInStep(const Contract& contract);

}  // namespace covey

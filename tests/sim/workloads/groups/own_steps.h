// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "common/cluster/ids.h"
#include "tests/sim/workloads/groups/groups_plan.h"

namespace covey::sim {

// The steps of a member's own group that its values must contain. A value.
struct OwnSteps {
  uint64_t position = 0;  // of the group
  Step first;
  Step last;
};

// Invariant: where the contract promises it, a member finds its own group's steps in the values it
// gets. Describes the first violation in the values of a tensor; empty when there is none. Pure.
// Precondition (checked): the first step is 1 or a later one.
std::string MissingOwnStep(const GroupsPlan& plan, size_t tensor, std::span<const float> values,
                           const OwnSteps& own);

}  // namespace covey::sim

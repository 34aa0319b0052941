// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "common/runtime/member.h"
#include "tests/sim/process/process.h"

namespace covey::sim {

// The outcome of a process whose node is `member`. Pure.
Program::Outcome OutcomeOf(const Member& member);

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/straggler_action.h"
#include "common/grouping/stragglers/straggler_judge.h"
#include "common/grouping/stragglers/straggler_options.h"

namespace covey {

// Partial reduce: a group goes on without those members that are late. Called by the
// StragglerLadder. Pure. Precondition of all: the pace of every member is known.

// The group no longer waits for members with hiccups. Nothing when there are none, or when it
// already waits for so few.
std::optional<StragglerAction> StopWaiting(const GroupInForce& group, const StragglerJudge& judge,
                                           const StragglerOptions& options);

// The group waits for all members again: none was late for a whole window of reports.
// `good_reports`: of all members, in a row, with the efficiency of the group good.
std::optional<StragglerAction> WaitAgain(const GroupInForce& group, size_t good_reports,
                                         const StragglerJudge& judge,
                                         const StragglerOptions& options);

// The group waits for all but `late` members, or for as many as the operator has said.
StragglerAction PartialReduce(const GroupInForce& group, size_t late, std::string evidence,
                              const StragglerJudge& judge, const StragglerOptions& options);

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/straggler_action.h"
#include "common/grouping/stragglers/straggler_judge.h"
#include "common/grouping/stragglers/straggler_options.h"

namespace covey {

// The mildest measure against a straggler: shares of the samples in proportion to speed, so that
// all members finish together; and even shares again when all members have recovered. Nothing when
// the shares in force are right.
//
// Called by the StragglerLadder. Pure. Precondition: the pace of every member is known.
std::optional<StragglerAction> ShiftShares(const GroupInForce& group, const StragglerJudge& judge,
                                           const StragglerOptions& options);

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "common/grouping/stragglers/group_efficiency.h"
#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/straggler_action.h"
#include "common/grouping/stragglers/straggler_judge.h"
#include "common/grouping/stragglers/straggler_options.h"

namespace covey {

// What to do about a member that holds its group back in spite of its small share. It goes to the
// fastest group with room that is about as slow as the member, or is evicted when there is none.
// Where neither is allowed, its group does not wait for it.
//
// `efficiency`: that of `group`. `groups`: all ACTIVE ones. Called by the StragglerLadder. Pure.
// Precondition: the pace of every member of `group` is known.
std::optional<StragglerAction> RemoveSlowest(const GroupInForce& group,
                                             const GroupEfficiency& efficiency,
                                             const std::vector<GroupInForce>& groups,
                                             const StragglerJudge& judge,
                                             const StragglerOptions& options);

}  // namespace covey

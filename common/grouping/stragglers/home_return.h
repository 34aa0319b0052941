// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "common/cluster/ids.h"
#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/straggler_action.h"
#include "common/grouping/stragglers/straggler_judge.h"
#include "common/grouping/stragglers/straggler_options.h"

namespace covey {

// Sends a member that was moved to a slower group back to its home, when it has been as fast as the
// members there for recovered_reports, and its home has room. Owned by the StragglerLadder.
// Actor-confined. Deterministic.
class HomeReturn {
 public:
  explicit HomeReturn(const StragglerOptions& options) : options_(options) {}

  // From the next report on.
  void SetOptions(const StragglerOptions& options) { options_ = options; }

  // Handles a report of `member` of `group`, which `judge` has seen. `groups`: all ACTIVE ones.
  std::optional<StragglerAction> Consider(const GroupInForce& group, const GroupMember& member,
                                          const std::vector<GroupInForce>& groups,
                                          const StragglerJudge& judge);
  // Counts from 0 again.
  void Forget(NodeId member) { fits_.erase(member); }

 private:
  StragglerOptions options_;
  std::map<NodeId, size_t> fits_;  // reports in a row with the speed of its home
};

}  // namespace covey

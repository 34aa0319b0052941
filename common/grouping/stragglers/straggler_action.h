// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"

namespace covey {

// A measure that the straggler ladder asks for; its owner carries it out. A value.
struct StragglerAction {
  enum class Kind {
    kNotice,         // no change; only with StragglerRung::kObserve
    kShiftSamples,   // `shares`; empty = evenly again
    kPartialReduce,  // `minimum_members`, `grace`; 0 = wait for all members again
    kRegroup,        // `member` goes to group `to`
    kEvict,          // `member` is in no group from now on
  };
  Kind kind;
  GroupId group;  // the group concerned; for kRegroup the one that `member` leaves, 0 = none
  std::vector<uint32_t> shares = {};
  uint32_t minimum_members = 0;
  absl::Duration grace = absl::ZeroDuration();
  NodeId member = NodeId();
  GroupId to = GroupId();
  // The observation, for users: "worker-3 takes 4.2 ms per sample, 2.1x …".
  std::string evidence;
};

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "common/cluster/ids.h"

namespace covey::worker {

// One rendezvous of the members of a group: which group, which plan for it, and how often the
// members of that plan have met again because messages were lost. Collectives belong to one round,
// and end with it. A later round of a generation has the higher attempt.
struct GroupRound {
  GroupId group;
  uint64_t generation = 0;
  uint32_t attempt = 0;

  friend auto operator<=>(const GroupRound&, const GroupRound&) = default;
};

}  // namespace covey::worker

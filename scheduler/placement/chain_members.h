// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "proto/view.pb.h"
#include "scheduler/placement/server_loads.h"

namespace covey::scheduler {

// Look-ups in one chain. Pure.

inline bool IsFull(const proto::Replica& replica) { return !replica.joining(); }

// -1 when the node is not in the chain.
int PositionIn(const proto::Shard& shard, uint64_t node);
bool HasJoining(const proto::Shard& shard);
bool IsDraining(const ServerLoads& loads, const proto::Replica& replica);
// Number of full members that may stay.
uint32_t StayingIn(const proto::Shard& shard, const ServerLoads& loads);
// Whether its last head has departed, so that no server holds its content.
bool IsLost(const proto::Shard& shard, const ServerLoads& loads);

}  // namespace covey::scheduler

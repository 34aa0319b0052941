#pragma once

#include <cstdint>

#include "proto/view.pb.h"
#include "scheduler/placement/hosting.h"

namespace covey::scheduler {

// Look-ups in one chain. Pure.

inline bool IsFull(const proto::Replica& replica) { return !replica.joining(); }

// -1 when the node is not in it.
int PositionIn(const proto::Shard& shard, uint64_t node);
bool HasJoining(const proto::Shard& shard);
bool IsDraining(const Hosting& hosting, const proto::Replica& replica);
// Full members that may stay.
uint32_t StayingIn(const proto::Shard& shard, const Hosting& hosting);
// Its last head has departed; nobody holds its content.
bool IsLost(const proto::Shard& shard, const Hosting& hosting);

void EraseAt(proto::Shard& shard, int position);

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement/chain_members.h"

#include <algorithm>

namespace covey::scheduler {

int PositionIn(const proto::Shard& shard, uint64_t node) {
  for (int i = 0; i < shard.chain_size(); ++i) {
    if (shard.chain(i).node() == node) return i;
  }
  return -1;
}

bool HasJoining(const proto::Shard& shard) {
  return shard.chain_size() > 0 && shard.chain().rbegin()->joining();
}

bool IsDraining(const ServerLoads& loads, const proto::Replica& replica) {
  const ServerLoads::Server* server = loads.Find(replica.node());
  return server != nullptr && server->draining;
}

uint32_t StayingIn(const proto::Shard& shard, const ServerLoads& loads) {
  return static_cast<uint32_t>(
      std::count_if(shard.chain().begin(), shard.chain().end(),
                    [&](const proto::Replica& r) { return IsFull(r) && !IsDraining(loads, r); }));
}

bool IsLost(const proto::Shard& shard, const ServerLoads& loads) {
  return shard.chain_size() > 0 && loads.Find(shard.chain(0).node()) == nullptr;
}

}  // namespace covey::scheduler

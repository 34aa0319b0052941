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

bool IsDraining(const Hosting& hosting, const proto::Replica& replica) {
  const Hosting::Server* server = hosting.Find(replica.node());
  return server != nullptr && server->draining;
}

uint32_t StayingIn(const proto::Shard& shard, const Hosting& hosting) {
  return static_cast<uint32_t>(
      std::count_if(shard.chain().begin(), shard.chain().end(),
                    [&](const proto::Replica& r) { return IsFull(r) && !IsDraining(hosting, r); }));
}

bool IsLost(const proto::Shard& shard, const Hosting& hosting) {
  return shard.chain_size() > 0 && hosting.Find(shard.chain(0).node()) == nullptr;
}

void EraseAt(proto::Shard& shard, int position) {
  shard.mutable_chain()->erase(shard.chain().begin() + position);
}

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/kept_key_lists.h"

#include <algorithm>
#include <cstddef>

#include "common/base/small_limits.h"
#include "common/cluster/limits.h"

namespace covey::client {
namespace {

constexpr size_t kSmallKeyLists = 2;

}  // namespace

bool KeptKeyLists::Contains(ShardId shard, const Keeper& keeper, const KeyListName& name) const {
  const auto found = shards_.find(shard);
  return found != shards_.end() && found->second.keeper == keeper &&
         found->second.last_uses.contains(name);
}

void KeptKeyLists::Observe(ShardId shard, const Keeper& keeper, const KeyListName& name,
                           uint32_t kept) {
  if (kept == 0 || name.is_none()) return;
  Lists& lists = shards_[shard];
  if (lists.keeper != keeper) lists = {.keeper = keeper, .last_uses = {}, .by_use = {}};
  uint64_t& last_use = lists.last_uses[name];
  lists.by_use.erase(last_use);
  last_use = ++uses_;
  lists.by_use.emplace(last_use, name);
  for (const size_t limit =
           std::min<size_t>(kept, LimitInForce(kKeyListsPerShardMax, kSmallKeyLists));
       lists.by_use.size() > limit;) {
    const auto oldest = lists.by_use.begin();
    lists.last_uses.erase(oldest->second);
    lists.by_use.erase(oldest);
  }
}

void KeptKeyLists::Forget(ShardId shard, const KeyListName& name) {
  const auto found = shards_.find(shard);
  if (found == shards_.end()) return;
  Lists& lists = found->second;
  const auto use = lists.last_uses.find(name);
  if (use == lists.last_uses.end()) return;
  lists.by_use.erase(use->second);
  lists.last_uses.erase(use);
}

}  // namespace covey::client

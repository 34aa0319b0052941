// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/container/btree_map.h"
#include "absl/container/flat_hash_map.h"
#include "common/cluster/ids.h"
#include "common/table/key_list.h"

namespace covey::client {

// Which lists of keys the heads of sparse shards keep for this client, as their replies have said:
// a request with one of them need not bring the keys, only their name. A belief: the head may have
// dropped a list since. It says so then, and the keys are sent.
//
// Actor-confined. Deterministic. Limits: kKeyListsPerShardMax of each shard.
class KeptKeyLists {
 public:
  // The head that keeps lists, for one generation of the shard; a new head or generation has none.
  struct Keeper {
    Address head;
    uint64_t generation = 0;
    friend bool operator==(const Keeper&, const Keeper&) = default;
  };

  bool Contains(ShardId shard, const Keeper& keeper, const KeyListName& name) const;
  // A reply says that the keeper has so many lists for this client: the one of the request, and
  // those that were used before it.
  void Observe(ShardId shard, const Keeper& keeper, const KeyListName& name, uint32_t kept);
  // The keeper does not know the list.
  void Forget(ShardId shard, const KeyListName& name);

 private:
  struct Lists {
    Keeper keeper;
    absl::btree_map<KeyListName, uint64_t> last_uses;
    absl::btree_map<uint64_t, KeyListName> by_use;  // oldest first
  };

  absl::flat_hash_map<ShardId, Lists> shards_;
  uint64_t uses_ = 0;
};

}  // namespace covey::client

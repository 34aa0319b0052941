// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/functional/function_ref.h"
#include "common/cluster/ids.h"
#include "common/table/key_list.h"
#include "server/key_lists/listed_keys.h"

namespace covey::server {

// A process that sends requests. Names of lists mean something for one client only, so no client
// gets rows for the keys of another.
struct ListOwner {
  NodeId node;
  Incarnation incarnation;
  friend auto operator<=>(const ListOwner&, const ListOwner&) = default;
};

// The lists of keys that a data loop keeps, so that a client that uses a batch of keys again need
// not send them again: it names them. One for all shards of the loop.
//
// Memory: a client has at most kKeyListBytesPerClientMax; beyond it, the lists that it has not used
// for the longest go. All clients together have `bytes_max`; beyond it, the client that has the
// most loses its oldest list. So a client that floods the loop with lists loses its own.
//
// Actor-confined. Deterministic. Takes O(log of the lists) per call.
class KeyLists {
 public:
  explicit KeyLists(size_t bytes_max) : bytes_max_(bytes_max) {}
  KeyLists(const KeyLists&) = delete;

  // Lists beyond it go at once.
  void SetBytesMax(size_t bytes_max);

  // Of the shard, under this name and of so many keys; it counts as used. Null: there is none.
  std::shared_ptr<const ListedKeys> Use(const ListOwner& owner, ShardId shard,
                                        const KeyListName& name, uint32_t count);
  // Keeps the list as the newest, and in place of one of the same name; unless it is too long.
  // Precondition: the list is not in lent memory (Buffer::Lend), and the name is one.
  void Keep(const ListOwner& owner, ShardId shard, const KeyListName& name,
            std::shared_ptr<const ListedKeys> list);
  // How many lists of the owner are kept for the shard, provided that the one of this name is.
  uint32_t KeptWith(const ListOwner& owner, ShardId shard, const KeyListName& name) const;

  // The shard is closed here.
  void Forget(ShardId shard);
  // Clients without a future.
  void ForgetClients(absl::FunctionRef<bool(NodeId)> is_gone);

  size_t bytes() const { return bytes_; }

 private:
  using Key = std::pair<ShardId, KeyListName>;
  struct Kept {
    std::shared_ptr<const ListedKeys> list;
    size_t bytes = 0;
    uint64_t used = 0;  // number of its last use
  };
  struct Client {
    absl::btree_map<Key, Kept> lists;
    absl::btree_map<uint64_t, Key> by_use;  // oldest first
    absl::btree_map<ShardId, uint32_t> of_shards;
    size_t bytes = 0;
  };
  using Clients = absl::btree_map<ListOwner, Client>;

  void Touch(Kept& kept, const Key& key, Client& client);
  void SetBytes(const ListOwner& owner, size_t bytes, Client& client);
  void Drop(const ListOwner& owner, const Key& key, Client& client);
  void DropOldest(ListOwner owner);

  // Drops lists until the rest is within the maximum.
  void Fit();

  size_t bytes_max_;
  Clients clients_;
  absl::btree_set<std::pair<size_t, ListOwner>> by_bytes_;
  size_t bytes_ = 0;
  uint64_t uses_ = 0;
};

}  // namespace covey::server

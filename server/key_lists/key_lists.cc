// SPDX-License-Identifier: Apache-2.0
#include "server/key_lists/key_lists.h"

#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/cluster/limits.h"

namespace covey::server {
namespace {

// Of a list: its entries here, and the objects that it consists of.
constexpr size_t kOverheadBytes = 512;
// The places fill after the list was kept (row_places.h).
constexpr size_t kPlaceBytesPerKey = 12;

size_t BytesOf(const ListedKeys& list) {
  const size_t places = list.places == nullptr ? 0 : list.spans().size() * kPlaceBytesPerKey;
  return list.encoded.frame.size() + list.keys.size() + places + kOverheadBytes;
}

}  // namespace

void KeyLists::SetBytes(const ListOwner& owner, size_t bytes, Client& client) {
  by_bytes_.erase({client.bytes, owner});
  bytes_ = bytes_ - client.bytes + bytes;
  client.bytes = bytes;
  by_bytes_.insert({bytes, owner});
}

void KeyLists::Touch(Kept& kept, const Key& key, Client& client) {
  client.by_use.erase(kept.used);
  kept.used = ++uses_;
  client.by_use.emplace(kept.used, key);
}

std::shared_ptr<const ListedKeys> KeyLists::Use(const ListOwner& owner, ShardId shard,
                                                const KeyListName& name, uint32_t count) {
  const auto client = clients_.find(owner);
  if (client == clients_.end()) return nullptr;
  const Key key{shard, name};
  const auto kept = client->second.lists.find(key);
  if (kept == client->second.lists.end() || kept->second.list->encoded.list.count() != count) {
    return nullptr;
  }
  Touch(kept->second, key, client->second);
  return kept->second.list;
}

void KeyLists::SetBytesMax(size_t bytes_max) {
  bytes_max_ = bytes_max;
  Fit();
}

void KeyLists::Fit() {
  while (bytes_ > bytes_max_) DropOldest(by_bytes_.rbegin()->second);
}

void KeyLists::Keep(const ListOwner& owner, ShardId shard, const KeyListName& name,
                    std::shared_ptr<const ListedKeys> list) {
  COVEY_CHECK(!name.is_none());
  const size_t bytes = BytesOf(*list);
  if (bytes > kKeyListBytesPerClientMax || bytes > bytes_max_) return;
  const Key key{shard, name};
  Client& client = clients_[owner];
  if (client.lists.contains(key)) Drop(owner, key, client);
  Kept& kept = client.lists[key];
  kept = {.list = std::move(list), .bytes = bytes};
  Touch(kept, key, client);
  ++client.of_shards[shard];
  SetBytes(owner, client.bytes + bytes, client);
  while (client.bytes > kKeyListBytesPerClientMax) DropOldest(owner);
  Fit();
}

void KeyLists::Drop(const ListOwner& owner, const Key& key, Client& client) {
  const auto kept = client.lists.find(key);
  SetBytes(owner, client.bytes - kept->second.bytes, client);
  client.by_use.erase(kept->second.used);
  client.lists.erase(kept);
  if (--client.of_shards[key.first] == 0) client.of_shards.erase(key.first);
}

void KeyLists::DropOldest(ListOwner owner) {
  Client& client = clients_.at(owner);
  const Key oldest = client.by_use.begin()->second;
  Drop(owner, oldest, client);
  if (!client.lists.empty()) return;
  by_bytes_.erase({0, owner});
  clients_.erase(owner);
}

uint32_t KeyLists::KeptWith(const ListOwner& owner, ShardId shard, const KeyListName& name) const {
  const auto client = clients_.find(owner);
  if (client == clients_.end() || !client->second.lists.contains({shard, name})) return 0;
  return client->second.of_shards.at(shard);
}

void KeyLists::Forget(ShardId shard) {
  std::vector<std::pair<ListOwner, Key>> gone;
  for (const auto& [owner, client] : clients_) {
    for (auto list = client.lists.lower_bound({shard, KeyListName()});
         list != client.lists.end() && list->first.first == shard; ++list) {
      gone.push_back({owner, list->first});
    }
  }
  for (const auto& [owner, key] : gone) {
    const auto client = clients_.find(owner);
    Drop(owner, key, client->second);
    if (!client->second.lists.empty()) continue;
    by_bytes_.erase({0, owner});
    clients_.erase(client);
  }
}

void KeyLists::ForgetClients(absl::FunctionRef<bool(NodeId)> is_gone) {
  for (auto client = clients_.begin(); client != clients_.end();) {
    if (!is_gone(client->first.node)) {
      ++client;
      continue;
    }
    bytes_ -= client->second.bytes;
    by_bytes_.erase({client->second.bytes, client->first});
    client = clients_.erase(client);
  }
}

}  // namespace covey::server

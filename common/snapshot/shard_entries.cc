// SPDX-License-Identifier: Apache-2.0
#include "common/snapshot/shard_entries.h"

#include <algorithm>
#include <utility>

#include "proto/replication.pb.h"

namespace covey {

bool IsLog(const proto::SnapshotShard& entry) {
  return !entry.pieces().empty() && entry.pieces(0).kind() == proto::ReplicaPiece::UPDATES;
}

ShardEntries EntriesOf(const proto::SnapshotManifest& manifest, uint32_t table, uint32_t shard) {
  const auto is_of = [&](const proto::SnapshotShard& entry) {
    return entry.table() == table && entry.shard() == shard;
  };
  auto entry =
      std::lower_bound(manifest.shards().begin(), manifest.shards().end(), std::pair(table, shard),
                       [](const proto::SnapshotShard& entry, const auto& id) {
                         return std::pair(entry.table(), entry.shard()) < id;
                       });
  ShardEntries entries{.content = &*entry, .logs = {}};
  for (++entry; entry != manifest.shards().end() && is_of(*entry); ++entry) {
    entries.logs.push_back(&*entry);
  }
  return entries;
}

std::vector<ShardEntries> EntriesByShard(const proto::SnapshotManifest& manifest) {
  std::vector<ShardEntries> shards;
  for (const proto::SnapshotShard& entry : manifest.shards()) {
    if (IsLog(entry)) {
      shards.back().logs.push_back(&entry);
    } else {
      shards.push_back({.content = &entry, .logs = {}});
    }
  }
  return shards;
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/newest_snapshot.h"

#include <cstdint>
#include <map>

#include "common/snapshot/shard_entries.h"

namespace covey::scheduler {

proto::NewestSnapshot NewestSnapshotOf(const proto::SnapshotManifest& manifest) {
  std::map<uint32_t, uint64_t> updates;
  for (const ShardEntries& shard : EntriesByShard(manifest)) {
    updates[shard.newest().table()] += shard.newest().version();
  }
  proto::NewestSnapshot newest;
  newest.set_folder(manifest.folder());
  *newest.mutable_groups() = manifest.groups();
  for (const proto::Table& table : manifest.state().view().tables()) {
    newest.add_tables(table.id());
    newest.add_updates(updates[table.id()]);
  }
  return newest;
}

}  // namespace covey::scheduler

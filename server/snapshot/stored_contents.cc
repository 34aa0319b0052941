// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/stored_contents.h"

#include "common/base/planted_bug.h"

namespace covey::server {
namespace {

ShardId IdOf(const proto::SnapshotShard& entry) {
  return {TableId(entry.table()), ShardIndex(entry.shard())};
}

}  // namespace

void StoredContents::Begin(const std::string& folder, const std::string& base) {
  if (!base.empty() && base == newest_.folder) {
    base_ = std::move(newest_);
  } else if (base != base_.folder) {
    base_ = {};
  }
  newest_ = {.folder = folder, .shards = {}, .files = {}};
}

void StoredContents::Cut(ShardId shard, uint64_t generation, uint64_t index, Snapshot& snapshot) {
  const auto found = snapshot.shards.find(shard);
  if (found == snapshot.shards.end()) return;
  Content& content = found->second;
  const bool follows = index == content.newest_cut + 1 || Planted(PlantedBug::kRefersToOldContent);
  if (content.entry.generation() == generation && follows) {
    content.newest_cut = index;
  } else {
    snapshot.shards.erase(found);
  }
}

void StoredContents::Cut(ShardId shard, uint64_t generation, uint64_t index) {
  Cut(shard, generation, index, base_);
  Cut(shard, generation, index, newest_);
}

const proto::SnapshotShard* StoredContents::Find(ShardId shard) const {
  const auto found = base_.shards.find(shard);
  if (found == base_.shards.end()) return nullptr;
  const proto::SnapshotShard& entry = found->second.entry;
  // A file of unknown size was not completed, whatever the scheduler says of the snapshot.
  return base_.files.contains({entry.folder(), entry.file()}) ? &entry : nullptr;
}

void StoredContents::Store(proto::SnapshotShard entry) {
  entry.set_folder(newest_.folder);
  Content& content = newest_.shards[IdOf(entry)];
  content.newest_cut = entry.index();
  content.entry = std::move(entry);
}

void StoredContents::Refer(const proto::SnapshotShard& entry, uint64_t cut) {
  const File file(entry.folder(), entry.file());
  newest_.shards[IdOf(entry)] = {.entry = entry, .newest_cut = cut};
  newest_.files[file] = base_.files.at(file);
}

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#include "server/snapshot/stored_contents.h"

#include <algorithm>

#include "common/base/planted_bug.h"

namespace covey::server {
namespace {

ShardId IdOf(const proto::SnapshotShard& entry) {
  return {TableId(entry.table()), ShardIndex(entry.shard())};
}

StoredContents::File FileOf(const proto::SnapshotShard& entry) {
  return {entry.folder(), entry.file()};
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

void StoredContents::Cut(ShardId shard, uint64_t generation, uint64_t index, uint64_t logged_since,
                         Snapshot& snapshot) {
  const auto found = snapshot.shards.find(shard);
  if (found == snapshot.shards.end()) return;
  Content& content = found->second;
  const bool follows = !content.is_logged && (index == content.newest_cut + 1 ||
                                              Planted(PlantedBug::kRefersToOldContent));
  if (content.entries[0].generation() != generation) {
    snapshot.shards.erase(found);
  } else if (follows) {
    content.newest_cut = index;
  } else if (!content.is_logged && logged_since != 0 && logged_since == content.newest_cut) {
    content.is_logged = true;
  } else {
    snapshot.shards.erase(found);
  }
}

void StoredContents::Cut(ShardId shard, uint64_t generation, uint64_t index,
                         uint64_t logged_since) {
  Cut(shard, generation, index, logged_since, base_);
  Cut(shard, generation, index, 0, newest_);
}

const StoredContents::Entries* StoredContents::Find(ShardId shard, bool is_logged) const {
  const auto found = base_.shards.find(shard);
  if (found == base_.shards.end() || found->second.is_logged != is_logged) return nullptr;
  const Entries& entries = found->second.entries;
  // A file of unknown size was not completed, whatever the scheduler says of the snapshot.
  const bool is_complete = std::all_of(entries.begin(), entries.end(), [&](const auto& entry) {
    return base_.files.contains(FileOf(entry));
  });
  return is_complete ? &entries : nullptr;
}

const StoredContents::Entries* StoredContents::Expect(ShardId shard, uint64_t generation,
                                                      uint64_t index, uint64_t logged_since) const {
  const Entries* const entries = Find(shard);
  if (entries == nullptr || entries->front().generation() != generation) return nullptr;
  const uint64_t newest_cut = base_.shards.at(shard).newest_cut;
  return index == newest_cut + 1 || logged_since == newest_cut ? entries : nullptr;
}

void StoredContents::Store(proto::SnapshotShard entry) {
  entry.set_folder(newest_.folder);
  Content& content = newest_.shards[IdOf(entry)];
  content = {.entries = {}, .newest_cut = entry.index()};
  content.entries.push_back(std::move(entry));
}

void StoredContents::Refer(Entries entries, uint64_t cut) {
  for (const proto::SnapshotShard& entry : entries) {
    newest_.files[FileOf(entry)] = base_.files.at(FileOf(entry));
  }
  const ShardId shard = IdOf(entries[0]);
  newest_.shards[shard] = {.entries = std::move(entries), .newest_cut = cut};
}

}  // namespace covey::server

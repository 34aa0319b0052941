// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "proto/scheduler.pb.h"
#include "proto/snapshot.pb.h"

namespace covey {

// The entries that a manifest has of one shard.
struct ShardEntries {
  const proto::SnapshotShard* content = nullptr;
  // Of the updates that follow, in their order.
  std::vector<const proto::SnapshotShard*> logs;

  // The one with the newest index, version, samples and last step.
  const proto::SnapshotShard& newest() const { return logs.empty() ? *content : *logs.back(); }
};

// Whether the entry is that of a log. Pure, as all here. Precondition: it is one of a checked
// manifest.
bool IsLog(const proto::SnapshotShard& entry);

// The entries of a shard of one of the manifest's tables. Preconditions: the manifest is valid, and
// has the shard.
ShardEntries EntriesOf(const proto::SnapshotManifest& manifest, uint32_t table, uint32_t shard);
// All shards, in the manifest's order; the entries stay the manifest's. Precondition: it is valid.
std::vector<ShardEntries> EntriesByShard(const proto::SnapshotManifest& manifest);

}  // namespace covey

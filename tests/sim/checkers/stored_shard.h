// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/statusor.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/snapshot_reader.h"
#include "proto/replication.pb.h"
#include "proto/snapshot.pb.h"
#include "proto/view.pb.h"

namespace covey::sim {

// The content of a shard as a snapshot holds it. A value.
struct StoredShard {
  // Of a dense table.
  std::vector<float> values;
  std::vector<std::vector<float>> slots;
  // Of a sparse one, by key: its rows, and the first slots of these; and what SparseShard::Digest()
  // says of them and of the keys that wait.
  std::map<uint64_t, std::vector<float>> rows;
  std::map<uint64_t, std::vector<float>> row_slots;
  uint64_t rows_digest = 0;
  proto::ReplicaRecord record;
};

// The table of an entry of the manifest.
const proto::Table& TableOf(const proto::SnapshotManifest& manifest,
                            const proto::SnapshotShard& entry);

// Reads and verifies all entries of a shard of the manifest, and applies the updates of its logs.
// Errors as server::ReadStoredContent.
absl::StatusOr<StoredShard> ReadStoredShard(const SnapshotReader& snapshot,
                                            const ShardEntries& entries);

}  // namespace covey::sim

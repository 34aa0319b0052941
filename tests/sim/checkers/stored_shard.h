// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/snapshot_reader.h"
#include "proto/replication.pb.h"

namespace covey::sim {

// The content of a shard as a snapshot holds it. A value.
struct StoredShard {
  std::vector<float> values;
  std::vector<std::vector<float>> slots;
  proto::ReplicaRecord record;
};

// Reads and verifies all entries of a shard of the manifest, and applies the updates of its logs.
// Errors as server::ReadStoredContent.
absl::StatusOr<StoredShard> ReadStoredShard(const SnapshotReader& snapshot,
                                            const ShardEntries& entries);

}  // namespace covey::sim

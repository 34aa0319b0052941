// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "common/snapshot/snapshot_reader.h"
#include "proto/replication.pb.h"

namespace covey::sim {

// The content of a shard as a snapshot holds it. A value.
struct StoredShard {
  std::vector<float> values;
  std::vector<std::vector<float>> slots;
  proto::ReplicaRecord record;
};

// Reads and verifies all pieces of an entry of the manifest. Errors as SnapshotReader::ReadPiece.
absl::StatusOr<StoredShard> ReadStoredShard(const SnapshotReader& snapshot,
                                            const proto::SnapshotShard& entry);

}  // namespace covey::sim

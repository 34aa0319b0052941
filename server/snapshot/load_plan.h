// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "proto/replication.pb.h"
#include "proto/snapshot.pb.h"
#include "server/replication/load_source.h"

namespace covey::server {

// A piece of a snapshot to be read, and what it is to the shard that is being filled.
struct PlannedPiece {
  // In the manifest.
  const proto::SnapshotShard* shard = nullptr;
  const proto::SnapshotPiece* piece = nullptr;
  // Where the content has to be rebuilt from logs of updates, a shard of the snapshot, and the
  // piece's number among those of its entry: it is one of those for the shard, which follow each
  // other, and nothing else below counts.
  const proto::Table* table = nullptr;
  const proto::Shard* rebuilt = nullptr;
  int number = 0;
  // The part of its payload that the shard needs.
  uint64_t skip_bytes = 0;
  uint64_t bytes = 0;
  // As it is given to the replica, without the frame.
  proto::ReplicaPiece as;
};

// The pieces that fill a shard, in the order in which a replica takes them; or, where one of the
// snapshot's shards that are needed has logs, all pieces of these shards, so that they can be
// rebuilt (ShardRebuild). Pure. Preconditions: the manifest is valid, outlives the plan, and is
// that of the source's folder. NOT_FOUND: the snapshot has no such table, or, unless only values
// are taken, no shard of this range. OUT_OF_RANGE: its table is shorter.
absl::StatusOr<std::vector<PlannedPiece>> PlanLoad(const proto::SnapshotManifest& manifest,
                                                   const LoadSource& source);

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/statusor.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/snapshot_reader.h"
#include "proto/view.pb.h"
#include "server/replication/content_cut.h"

namespace covey::server {

// The content of a shard as of a snapshot's cut: reads and verifies all its pieces, and applies the
// updates of its logs. Blocks. Memory: the shard's values and slots, and one piece.
//
// `table`, `shard` and `entries` are the snapshot's own. Errors as SnapshotReader::ReadPiece and
// ShardRebuild, whose DATA_LOSS names the shard.
absl::StatusOr<ContentCut> ReadStoredContent(const SnapshotReader& snapshot,
                                             const proto::Table& table, const proto::Shard& shard,
                                             const ShardEntries& entries);

}  // namespace covey::server

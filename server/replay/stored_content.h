// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/snapshot/shard_entries.h"
#include "common/snapshot/snapshot_reader.h"
#include "common/store/folder.h"
#include "proto/view.pb.h"
#include "server/replication/content_cut.h"
#include "server/replication/load_source.h"
#include "server/replication/shard_content.h"

namespace covey::server {

// The content of a shard as of a snapshot's cut: reads and verifies all its pieces, and applies the
// updates of its logs. Blocks. Memory: the shard's values and slots, and one piece.
//
// `table`, `shard` and `entries` are the snapshot's own. Errors as SnapshotReader::ReadPiece and
// ShardRebuild, whose DATA_LOSS names the shard.
absl::StatusOr<ContentCut> ReadStoredContent(const SnapshotReader& snapshot,
                                             const proto::Table& table, const proto::Shard& shard,
                                             const ShardEntries& entries);

// A shard as it begins from a snapshot in the store, as a data loop loads it: reads and verifies
// what the source takes, into a new content of the shard's definition. Blocks. Errors as
// ShardLoader; its DATA_LOSS names file and offset.
absl::StatusOr<std::unique_ptr<ShardContent>> LoadContent(Folder& store, const LoadSource& source,
                                                          std::unique_ptr<ShardContent> content);

}  // namespace covey::server

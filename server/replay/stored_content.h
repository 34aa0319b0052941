// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
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

// The rows of a sparse table's shard as of a snapshot's cut, ascending by MixBits(key). They come
// in pieces: the keys, and the values of a row for each. Verifies what it reads. Blocks. Memory: a
// piece. A status that is not OK ends the reading, and is its result. FAILED_PRECONDITION: there
// are logs of updates. Others as SnapshotReader::ReadPiece. Precondition: the table is sparse.
using TakeRows =
    absl::FunctionRef<absl::Status(std::span<const uint64_t> keys, std::span<const float> values)>;
absl::Status ReadStoredRows(const SnapshotReader& snapshot, const proto::Table& table,
                            const proto::Shard& shard, const ShardEntries& entries, TakeRows take);

// A shard as it begins from a snapshot in the store, as a data loop loads it: reads and verifies
// what the source takes, into a new content of the shard's definition. Blocks. Errors as
// ShardLoader; its DATA_LOSS names file and offset.
absl::StatusOr<std::unique_ptr<ShardContent>> LoadContent(Folder& store, const LoadSource& source,
                                                          std::unique_ptr<ShardContent> content);

}  // namespace covey::server

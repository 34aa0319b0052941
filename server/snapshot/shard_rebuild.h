// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/snapshot/shard_entries.h"
#include "proto/snapshot.pb.h"
#include "proto/view.pb.h"
#include "server/replication/content_cut.h"
#include "server/replication/content_pieces.h"
#include "server/replication/shard_content.h"
#include "server/table/host_memory.h"

namespace covey::server {

// Rebuilds what a snapshot holds of a shard as an earlier content and logs of the updates since: it
// applies these with the code of servers, so it gets the bits that they had at the cut.
//
// Used by the loader of a data loop and, through server/replay, by the command line. Memory: the
// shard's values and slots.
class ShardRebuild {
 public:
  // A table of the manifest, a shard of it, and its entries, which outlive this. INVALID_ARGUMENT:
  // this program cannot serve such a table. RESOURCE_EXHAUSTED: too little memory is free.
  static absl::StatusOr<std::unique_ptr<ShardRebuild>> Begin(const proto::Table& table,
                                                             const proto::Shard& shard,
                                                             const ShardEntries& entries);

  // The payload of a piece of an entry: first those of the content, then those of each log, each in
  // their order. DATA_LOSS: it does not continue what came before; says why. Afterwards this must
  // not be used. Precondition: the payload was checked against its checksum.
  absl::Status Add(const proto::SnapshotShard& entry, int piece, const Buffer& payload);

  // The content at the cut. DATA_LOSS: the updates do not lead to the version that the manifest
  // says. Precondition: all pieces were added.
  absl::StatusOr<ContentCut> Finish() const;

 private:
  ShardRebuild(const ShardEntries& entries, std::unique_ptr<BufferPool> spares,
               std::unique_ptr<HostMemory> memory, std::unique_ptr<ShardContent> content)
      : entries_(entries),
        spares_(std::move(spares)),
        memory_(std::move(memory)),
        import_(std::make_unique<ContentImport>(std::move(content))) {}

  absl::Status AddContent(const proto::SnapshotShard& entry, int piece, const Buffer& payload);
  absl::Status Apply(const proto::SnapshotShard& log, ShardRecord record);

  const ShardEntries entries_;
  const std::unique_ptr<BufferPool> spares_;
  const std::unique_ptr<HostMemory> memory_;
  std::unique_ptr<ContentImport> import_;  // until the content is complete
  std::unique_ptr<ShardContent> content_;  // from then on
  // The log whose updates were applied last, and the index of its newest record so far.
  const proto::SnapshotShard* log_ = nullptr;
  uint64_t newest_ = 0;
};

}  // namespace covey::server

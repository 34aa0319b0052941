// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/contract/momentum_governor.h"
#include "common/contract/read_gate.h"
#include "proto/replication.pb.h"
#include "server/replication/push_history.h"
#include "server/sparse/sparse_cut.h"

namespace covey::server {

// Everything of a shard's content as of one record; made by ShardContent::Cut(). The values and the
// slots are handles whose bytes never change, because an update writes elsewhere what a handle
// refers to.
//
// A value. That of a dense shard depends on neither the shard nor its thread: it may be handed to
// another thread, and it and its handles may be read and dropped there, even after the shard is
// gone. Of a sparse shard, the rows can be read once, piece by piece, and the cut stays on the
// shard's thread (sparse_cut.h). Memory: once an update has followed, the old values and slots,
// until the cut is dropped, or the old rows, until they are read; and a copy of the push history,
// at most kProducersPerShardMax full windows.
struct ContentCut {
  uint64_t index = 0;  // of the record
  Version version;
  uint64_t samples = 0;
  uint64_t discarded = 0;  // pushes that are part of no update
  uint64_t last_cut = 0;   // SnapshotOrder.id of the newest; 0 = none
  AsynchronyEstimates asynchrony;
  // Of a dense shard.
  Buffer values;
  std::vector<Buffer> slots;
  // Of a sparse one; otherwise null.
  std::shared_ptr<SparseCut> rows = nullptr;
  SparseShard::Totals row_totals = {};
  ClockVector clocks;
  PushHistory push_history;

  // ShardContent::Digest() as of the record, of a dense shard. One pass over values and slots.
  uint64_t Digest() const;
  // The same without a pass, for a caller that knows the digests of the parts: of a dense shard the
  // CRC-32C of the values and of each slot, in this order; of a sparse one SparseShard::Digest().
  // Precondition (checked): one per part.
  uint64_t Digest(std::span<const uint64_t> parts) const;

  // All but values and slots, in parts that each keep a frame small. The last part lacks the
  // digest.
  std::vector<proto::ReplicaRecord> Describe() const;
};

}  // namespace covey::server

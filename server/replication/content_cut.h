// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/contract/momentum_governor.h"
#include "common/contract/read_gate.h"
#include "proto/replication.pb.h"
#include "server/replication/push_history.h"

namespace covey::server {

// Everything of a shard's content as of one record; made by ShardContent::Cut(). The values and the
// slots are handles whose bytes never change, because an update writes elsewhere what a handle
// refers to.
//
// A value. It depends on neither the shard nor its thread: it may be handed to another thread, and
// it and its handles may be read and dropped there, even after the shard is gone. Memory: once an
// update has followed, the old values and slots, until the cut is dropped; and a copy of the push
// history, at most kProducersPerShardMax full windows.
struct ContentCut {
  uint64_t index = 0;  // of the record
  Version version;
  uint64_t samples = 0;
  uint64_t discarded = 0;  // pushes that are part of no update
  uint64_t last_cut = 0;   // SnapshotOrder.id of the newest; 0 = none
  AsynchronyEstimates asynchrony;
  Buffer values;
  std::vector<Buffer> slots;
  ClockVector clocks;
  PushHistory push_history;

  // ShardContent::Digest() as of the record. One pass over values and slots.
  uint64_t Digest() const;
  // The same without a pass, for a caller that knows the CRC-32C of the values and of each slot, in
  // this order. Precondition (checked): one per array.
  uint64_t Digest(std::span<const uint32_t> checksums) const;

  // All but values and slots, in parts that each keep a frame small. The last part lacks the
  // digest.
  std::vector<proto::ReplicaRecord> Describe() const;
};

}  // namespace covey::server

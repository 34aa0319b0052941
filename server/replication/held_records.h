// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/cluster/ids.h"
#include "server/replication/shard_record.h"

namespace covey::server {

// Sees the records of those shards of one loop of which the loop has the last full replica: what
// that holds, all full replicas hold. Actor-confined.
class HeldRecords {
 public:
  virtual ~HeldRecords() = default;

  // Whether it wants any at present.
  virtual bool wants_records() const = 0;
  // Whether it keeps the frame of the shard's next record beyond the call; it is then not in lent
  // memory.
  virtual bool KeepsFrame(ShardId id) const = 0;
  // A record that the shard's content now has. `content_bytes`: values and optimizer slots.
  virtual void OnHeld(ShardId id, uint64_t generation, ShardRecord& record,
                      uint64_t content_bytes) = 0;
};

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/cluster/ids.h"

namespace covey::sim {

// One server's state of a shard whose chain it is in, according to the scheduler. A value.
struct ReplicaSnapshot {
  std::string server;
  NodeId node;
  ShardId shard;
  // As the server knows the chain; 0 = it knows none.
  uint64_t generation = 0;
  uint64_t chain_epoch = 0;
  bool has_content = false;
  // The newest record of the content, and the newest that all joined successors hold.
  uint64_t index = 0;
  uint64_t durable = 0;
  uint64_t version = 0;
  uint64_t digest = 0;
  // Of a sparse table.
  uint64_t rows = 0;
};

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "common/cluster/ids.h"

namespace covey::sim {

// What one server holds of a shard in whose chain the scheduler has it. A value.
struct ReplicaSnapshot {
  std::string server;
  NodeId node;
  ShardId shard;
  // As the server knows the chain; 0 = it knows of none.
  uint64_t generation = 0;
  uint64_t chain_epoch = 0;
  bool has_content = false;
  // Of the content: its newest record, and the newest that all joined ones behind it hold.
  uint64_t index = 0;
  uint64_t durable = 0;
  uint64_t version = 0;
  uint64_t digest = 0;
};

}  // namespace covey::sim

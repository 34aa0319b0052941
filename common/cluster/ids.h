// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>
#include <utility>

#include "common/base/strong_id.h"

namespace covey {

// One process of the cluster; given by the scheduler, never reused. 0 = not registered.
using NodeId = StrongId<struct NodeIdTag, uint64_t>;
// Random number drawn when a process starts; tells a restart from a retry.
using Incarnation = StrongId<struct IncarnationTag, uint64_t>;
// Number of a view; only the scheduler raises it.
using Epoch = StrongId<struct EpochTag, uint64_t>;
using TableId = StrongId<struct TableIdTag, uint32_t>;
// Position of a shard in its table.
using ShardIndex = StrongId<struct ShardIndexTag, uint32_t>;
using GroupId = StrongId<struct GroupIdTag, uint32_t>;
// A group's own counter of finished reductions, from 1.
using Step = StrongId<struct StepTag, uint64_t>;
// Number of updates a shard has applied.
using Version = StrongId<struct VersionTag, uint64_t>;

// The scheduler is a node like the others, with a fixed id.
inline constexpr NodeId kSchedulerNode{1};

struct ShardId {
  TableId table;
  ShardIndex index;
  friend constexpr auto operator<=>(const ShardId&, const ShardId&) = default;
  template <typename H>
  friend H AbslHashValue(H state, const ShardId& id) {
    return H::combine(std::move(state), id.table, id.index);
  }
};

// One event loop of one node: the destination of a message.
struct Address {
  NodeId node;
  uint32_t loop = 0;
  friend constexpr auto operator<=>(const Address&, const Address&) = default;
};

// The loop number that stands for a process's own disk.
inline constexpr uint32_t kDiskLoop = 0xffffffff;
// A port of the scheduler that probes whether a process still listens at an endpoint.
inline constexpr uint32_t kProbeLoop = 0xfffffffe;
// The process's store of snapshots.
inline constexpr uint32_t kStoreLoop = 0xfffffffd;

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"
#include "scheduler/placement/server_loads.h"

namespace covey::scheduler {

// For chains that are long enough without it: the member that leaves for a joining replica.
using Leaving = std::map<ShardId, NodeId>;

// A replica, with its destination.
struct ShardMove {
  ShardId shard;
  NodeId from;
  NodeId to;
};

// Imbalance of servers: the sum over servers of bytes^2 + head_bytes^2. A move of a shard of
// s bytes from V to X changes it by 2s times
//
//     bytes(X) - bytes(V) + s,
//
// and, when V is its head and H comes after it, by another
//
//     head_bytes(H) - head_bytes(V) + s.
//
// Only moves that reduce it are made, so balancing ends. Then a server holds at most one shard more
// than another that could take it, or two if it is the head of all shards that could move.

// The change of the imbalance, without the factor of 2, when the replica at `position` of the chain
// moves to `to`.
double MoveGain(const proto::Shard& shard, int position, const ServerLoads::Server& to,
                const ServerLoads& loads);

// The move that reduces the imbalance most. Nothing when no move does, or when the servers
// concerned are busy: `busy_max` replicas join or leave there. No move brings members of a chain
// nearer to each other. `loads` counts the chains as they will be without those in `leaving`, which
// are not moved again. O(shards * replicas), more when servers share hosts or racks.
std::optional<ShardMove> PlanMove(const proto::ClusterView& view, const Leaving& leaving,
                                  const ServerLoads& loads, uint32_t busy_max);

}  // namespace covey::scheduler

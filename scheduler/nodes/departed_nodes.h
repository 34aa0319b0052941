// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"

namespace covey::scheduler {

// Departed nodes stay in the view, so that errors can name them. A job that runs for months has any
// number of them, so only the newest stay: this many clients, and this many servers and workers.
inline constexpr size_t kDepartedNodesKept = 64;

// The departed nodes that the view need not list any more, in growing order of id. A server or
// worker also stays while it is the newest one of its rank, a member of a group, in the chain of a
// shard, or the giver of a table's initial values. Pure. Cost: O(nodes); with more departed nodes
// than are kept also O(shards).
std::vector<NodeId> ForgettableNodes(const proto::ClusterView& view);

}  // namespace covey::scheduler

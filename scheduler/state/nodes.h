#pragma once

#include <string>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"
#include "scheduler/config.h"

namespace covey::scheduler {

// Look-ups among the nodes of a view, and how people name them. Pure.

// "server", "worker", "client".
std::string RoleName(proto::Role role);
// "worker-3".
std::string NodeName(proto::Role role, uint32_t rank);
// "worker-1 (node 5, pid 123 on host h)".
std::string Describe(const proto::Node& node);

// Null when there is none. O(log n).
proto::Node* FindNode(proto::ClusterView& view, NodeId id);
const proto::Node* FindNode(const proto::ClusterView& view, NodeId id);
// Newest node, in whatever state, of this role and rank; null when there is none.
const proto::Node* FindHolder(const proto::ClusterView& view, proto::Role role, uint32_t rank);

enum class Expected { kServers, kServersAndWorkers };
// "server-0, worker-2": expected, and not ALIVE.
std::string MissingNodes(const Config& config, const proto::ClusterView& view, Expected expected);

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"
#include "scheduler/state/job_spec.h"

namespace covey::scheduler {

// Look-ups in a view, and the names of nodes for users. Pure.

// "server", "worker", "client".
std::string RoleName(proto::Role role);
// "worker-3".
std::string NodeName(proto::Role role, uint32_t rank);
// "worker-1 (node 5, pid 123 on host h)".
std::string Describe(const proto::Node& node);

// Null when there is no such node. O(log n).
const proto::Node* FindNode(const proto::ClusterView& view, NodeId id);
// The newest node of this role and rank, in any state; null when there is none.
const proto::Node* FindHolder(const proto::ClusterView& view, proto::Role role, uint32_t rank);

// Null when there is no such group.
const proto::Group* FindGroup(const proto::ClusterView& view, GroupId id);
// The ACTIVE group that the worker is a member of; null when there is none.
const proto::Group* FindActiveGroupOf(const proto::ClusterView& view, NodeId worker);
// Node.id of the members of all ACTIVE groups.
std::set<uint64_t> MembersOfActiveGroups(const proto::ClusterView& view);

// "worker-1"; "node 5" when it is not in the view.
std::string NameOf(const proto::ClusterView& view, NodeId id);
// "worker-1", "worker-3". Precondition: all are in the view.
std::vector<std::string> NamesOf(const proto::ClusterView& view, const std::vector<NodeId>& nodes);
// "worker-1, worker-3"; of more than 8 names the first 8 "and 2 more".
std::string ListNames(const std::vector<std::string>& names);

enum class Expected { kServers, kServersAndWorkers };
// "server-0, worker-2": the expected nodes that are not ALIVE.
std::string MissingNodes(const JobSpec& job, const proto::ClusterView& view, Expected expected);

}  // namespace covey::scheduler

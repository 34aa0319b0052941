// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/departed_nodes.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace covey::scheduler {
namespace {

// Those that something in the view refers to.
std::set<uint64_t> NodesInUse(const proto::ClusterView& view) {
  std::set<uint64_t> in_use;
  for (const proto::Group& group : view.groups()) {
    in_use.insert(group.members().begin(), group.members().end());
  }
  for (const proto::Table& table : view.tables()) {
    if (table.has_initialization()) in_use.insert(table.initialization().node());
    for (const proto::Shard& shard : table.shards()) {
      for (const proto::Replica& replica : shard.chain()) in_use.insert(replica.node());
    }
  }
  // The newest node of a rank says whether the rank was ever held, and by whom.
  std::set<std::pair<proto::Role, uint32_t>> seen;
  for (auto node = view.nodes().rbegin(); node != view.nodes().rend(); ++node) {
    if (seen.emplace(node->role(), node->rank()).second) in_use.insert(node->id());
  }
  return in_use;
}

void KeepNewest(std::vector<NodeId>& departed) {
  departed.resize(departed.size() - std::min(departed.size(), kDepartedNodesKept));
}

}  // namespace

std::vector<NodeId> ForgettableNodes(const proto::ClusterView& view) {
  std::vector<NodeId> clients;
  std::vector<NodeId> others;
  for (const proto::Node& node : view.nodes()) {
    if (node.state() == proto::Node::ALIVE) continue;
    (node.role() == proto::CLIENT ? clients : others).push_back(NodeId(node.id()));
  }
  KeepNewest(clients);
  KeepNewest(others);
  if (!others.empty()) {
    const std::set<uint64_t> in_use = NodesInUse(view);
    others.erase(std::remove_if(others.begin(), others.end(),
                                [&](NodeId node) { return in_use.contains(node.value()); }),
                 others.end());
  }
  std::vector<NodeId> forgettable;
  std::merge(clients.begin(), clients.end(), others.begin(), others.end(),
             std::back_inserter(forgettable));
  return forgettable;
}

}  // namespace covey::scheduler

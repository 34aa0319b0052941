// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/replicas_in_view.h"

#include <algorithm>

namespace covey::cli {

std::vector<std::string> HoldersOf(const proto::ClusterView& view, const LedgerLoad::Lane& lane) {
  std::vector<std::string> holders;
  for (const proto::Table& table : view.tables()) {
    if (table.id() != lane.table.id.value() || table.shards().empty()) continue;
    for (const proto::Replica& replica : table.shards(0).chain()) {
      for (const proto::Node& node : view.nodes()) {
        if (node.id() == replica.node()) holders.push_back(node.name());
      }
    }
  }
  return holders;
}

std::vector<const LedgerLoad::Lane*> LanesHeadedBy(
    absl::string_view server, const proto::ClusterView& view,
    const std::vector<std::unique_ptr<LedgerLoad::Lane>>& lanes) {
  std::vector<const LedgerLoad::Lane*> headed;
  for (const auto& lane : lanes) {
    const std::vector<std::string> holders = HoldersOf(view, *lane);
    if (!holders.empty() && holders[0] == server) headed.push_back(lane.get());
  }
  return headed;
}

bool HasReplicas(const proto::ClusterView& view) {
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      if (shard.chain_size() < 2 || shard.chain(1).joining()) return false;
    }
  }
  return true;
}

bool IsAlive(const proto::ClusterView& view, absl::string_view name) {
  return std::any_of(view.nodes().begin(), view.nodes().end(), [name](const proto::Node& node) {
    return node.name() == name && node.state() == proto::Node::ALIVE;
  });
}

}  // namespace covey::cli

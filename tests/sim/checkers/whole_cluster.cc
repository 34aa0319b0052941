// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/whole_cluster.h"

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/str_cat.h"

namespace covey::sim {

uint32_t WantedReplicas(const proto::TableSpec& spec) {
  if (spec.durability() == proto::MEMORY) return 1;
  return spec.replicas() == 0 ? 2 : spec.replicas();
}

void SetReplicas(uint32_t replicas, proto::TableSpec& spec) {
  if (replicas == 1) {
    spec.set_durability(proto::MEMORY);
  } else {
    spec.set_replicas(replicas);
  }
}

namespace {

bool HoldsPushes(const proto::Table& table) {
  const proto::Contract& contract =
      table.has_contract() ? table.contract() : table.spec().contract();
  switch (contract.kind()) {
    case proto::Contract::BSP:
    case proto::Contract::LOCAL:
      return true;
    case proto::Contract::BUFFERED:
      return contract.buffer() != 1;
    default:
      return false;
  }
}

// The head, if unreplicated acknowledgments may require that it stays alone; else 0.
uint64_t KeptAlone(const proto::Table& table, const proto::Shard& shard) {
  const auto has_joined = [](const proto::Replica& replica) { return !replica.joining(); };
  const bool alone = std::count_if(shard.chain().begin(), shard.chain().end(), has_joined) == 1;
  return alone && HoldsPushes(table) ? shard.chain(0).node() : 0;
}

}  // namespace

std::string WhyNotWhole(const proto::ClusterView& view) {
  std::set<uint64_t> kept;
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) kept.insert(KeptAlone(table, shard));
  }
  std::map<uint64_t, const proto::Node*> nodes;
  uint32_t servers = 0;
  for (const proto::Node& node : view.nodes()) {
    nodes[node.id()] = &node;
    if (node.state() != proto::Node::ALIVE) continue;
    if (node.draining() && kept.count(node.id()) > 0) continue;
    if (node.draining()) return absl::StrCat(node.name(), " has not gone yet");
    if (node.role() == proto::SERVER) ++servers;
  }
  for (const proto::Table& table : view.tables()) {
    const uint32_t wanted = std::min(WantedReplicas(table.spec()), servers);
    for (const proto::Shard& shard : table.shards()) {
      const std::string which =
          absl::StrCat("shard ", shard.index(), " of ", table.spec().name(), " ");
      const bool may_wait = KeptAlone(table, shard) != 0;
      if (!may_wait && shard.chain_size() != static_cast<int>(std::max(1u, wanted))) {
        return absl::StrCat(which, "has ", shard.chain_size(), " replicas of ", wanted);
      }
      for (const proto::Replica& replica : shard.chain()) {
        const auto node = nodes.find(replica.node());
        if (node == nodes.end() || node->second->state() != proto::Node::ALIVE) {
          return absl::StrCat(which, "is on node ", replica.node(), ", which is not alive");
        }
        if (replica.joining() && !may_wait) return absl::StrCat(which, "is being filled");
      }
    }
  }
  return "";
}

}  // namespace covey::sim

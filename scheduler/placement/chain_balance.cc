// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement/chain_balance.h"

#include <algorithm>
#include <vector>

#include "common/cluster/limits.h"

namespace covey::scheduler {
namespace {

double Difference(uint64_t a, uint64_t b) {
  return static_cast<double>(a) - static_cast<double>(b);
}

std::vector<uint64_t> OthersThan(const proto::Shard& shard, int position) {
  std::vector<uint64_t> others = NodesOf(shard);
  others.erase(others.begin() + position);
  return others;
}

// In growing order of bytes: the first server that may take a replica is the best.
std::vector<const ServerLoads::Server*> Takers(const ServerLoads& loads, uint32_t busy_max) {
  std::vector<const ServerLoads::Server*> takers;
  for (const ServerLoads::Server& server : loads.servers()) {
    if (server.is_usable() && !server.avoided && server.joining < busy_max) {
      takers.push_back(&server);
    }
  }
  std::stable_sort(takers.begin(), takers.end(),
                   [](const auto* a, const auto* b) { return a->bytes < b->bytes; });
  return takers;
}

}  // namespace

double MoveGain(const proto::Shard& shard, int position, const ServerLoads::Server& to,
                const ServerLoads& loads) {
  const ServerLoads::Server* from = loads.Find(shard.chain(position).node());
  if (from == nullptr) return 0;
  const double size = static_cast<double>(ShardBytes(shard));
  double change = Difference(to.bytes, from->bytes) + size;
  if (position == 0 && shard.chain_size() > 1 && !shard.chain(1).joining()) {
    const ServerLoads::Server* heir = loads.Find(shard.chain(1).node());
    if (heir == nullptr) return 0;
    change += Difference(heir->head_bytes, from->head_bytes) + size;
  }
  return -change * size;
}

std::optional<ShardMove> PlanMove(const proto::ClusterView& view, const Leaving& leaving,
                                  const ServerLoads& loads, uint32_t busy_max) {
  const std::vector<const ServerLoads::Server*> takers = Takers(loads, busy_max);
  std::optional<ShardMove> best;
  double best_gain = 0;
  for (const proto::Table& table : view.tables()) {
    for (const proto::Shard& shard : table.shards()) {
      const ShardId id{TableId(table.id()), ShardIndex(shard.index())};
      // A chain of the greatest length has no room for a joining replica.
      if (shard.chain_size() == 0 || shard.chain_size() >= static_cast<int>(kReplicasMax) ||
          shard.chain().rbegin()->joining() || leaving.count(id) > 0) {
        continue;
      }
      std::vector<uint64_t> holders;
      for (int position = 0; position < shard.chain_size(); ++position) {
        if (takers.empty() || MoveGain(shard, position, *takers[0], loads) <= best_gain) continue;
        const ServerLoads::Server* from = loads.Find(shard.chain(position).node());
        if (from == nullptr || from->leaving >= busy_max) continue;
        if (holders.empty()) holders = NodesOf(shard);
        const std::vector<uint64_t> others = OthersThan(shard, position);
        const ServerLoads::Nearness nearness = loads.NearnessTo(*from, others);
        for (const ServerLoads::Server* to : takers) {
          const double gain = MoveGain(shard, position, *to, loads);
          if (gain <= best_gain) break;  // servers with more bytes gain less
          if (std::find(holders.begin(), holders.end(), to->node.value()) != holders.end() ||
              loads.NearnessTo(*to, others) > nearness) {
            continue;
          }
          best_gain = gain;
          best = ShardMove{.shard = id, .from = from->node, .to = to->node};
          break;
        }
      }
    }
  }
  return best;
}

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "server/neighbor_routes.h"

#include <utility>

namespace covey::server {

void NeighborRoutes::Follow(const ClusterView& view, const Address& self,
                            std::span<const ShardId> shards, Outbox& outbox) {
  absl::btree_map<Address, std::string> wanted;
  for (const ShardId& id : shards) {
    const proto::Shard& shard = *view.FindShard(id);
    const int position = *ClusterView::PositionInChain(shard, self);
    for (const int neighbor : {position - 1, position + 1}) {
      if (neighbor < 0 || neighbor >= shard.chain_size()) continue;
      const Address address{NodeId(shard.chain(neighbor).node()), shard.chain(neighbor).loop()};
      wanted[address] = view.EndpointOf(address);
    }
  }
  for (const auto& [address, endpoint] : wanted) {
    const auto known = endpoints_.find(address);
    if (!endpoint.empty() && (known == endpoints_.end() || known->second != endpoint)) {
      outbox.Route(address, endpoint);
    }
  }
  for (const auto& [address, endpoint] : endpoints_) {
    if (!wanted.contains(address) && !endpoint.empty()) outbox.Route(address, "");
  }
  endpoints_ = std::move(wanted);
}

}  // namespace covey::server

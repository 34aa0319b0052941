// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "absl/container/btree_map.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"

namespace covey::server {

// A data loop's connections to its predecessors and successors in chains, opened and closed
// according to the view. Actor-confined. Deterministic.
class NeighborRoutes {
 public:
  // Precondition: in the view, `self` is in the chains of `shards`.
  void Follow(const ClusterView& view, const Address& self, std::span<const ShardId> shards,
              Outbox& outbox);

 private:
  absl::btree_map<Address, std::string> endpoints_;
};

}  // namespace covey::server

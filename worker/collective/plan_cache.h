// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "common/cluster/link_costs.h"
#include "common/cluster/topology.h"
#include "common/collective/algorithm.h"
#include "common/collective/collective_kind.h"
#include "common/collective/plan.h"

namespace covey::worker {

// Chooses the algorithm of a collective, and keeps the plans and choices that were made, because
// the same sizes come again in each step. All members of a round know the same places and costs,
// so they choose the same. Actor-confined. Deterministic.
class PlanCache {
 public:
  // `algorithm`: of collectives that leave it open; kAutomatic: what is predicted to be fastest.
  explicit PlanCache(Algorithm algorithm) : algorithm_(algorithm) {}

  // Before the first collective; the same on all members.
  void SetAlgorithm(Algorithm algorithm) { algorithm_ = algorithm; }
  // Forgets everything: the members are other ones, or know more of each other. `paths`: where
  // they are, by rank.
  void Reset(std::vector<TopologyPath> paths, const LinkCosts& costs);

  // The plan of a collective of this many encoded bytes that asks for this algorithm.
  std::shared_ptr<const Plan> PlanFor(CollectiveKind kind, size_t bytes, Algorithm asked);

 private:
  Algorithm Choose(CollectiveKind kind, size_t bytes);

  Algorithm algorithm_;
  std::vector<TopologyPath> paths_;
  LinkCosts costs_;
  std::map<Algorithm, std::shared_ptr<const Plan>> plans_;
  std::map<std::pair<CollectiveKind, size_t>, Algorithm> choices_;
};

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "common/cluster/topology.h"
#include "common/collective/algorithm.h"
#include "common/collective/hierarchical_trees.h"
#include "common/collective/tree_links.h"

namespace covey {

// A member's place in a reduction tree. The sum is taken from left to right over `operands`: ranks
// of children, whose partial sums arrive, and once the member's own rank, which stands for its own
// values.
struct ReduceNode {
  std::vector<uint32_t> operands;
  std::optional<uint32_t> parent;  // none: the owner, which ends with the sum

  friend bool operator==(const ReduceNode&, const ReduceNode&) = default;
};

// A member's place in a spreading tree: it receives from the parent and forwards to the children in
// this order.
struct SpreadNode {
  std::optional<uint32_t> parent;  // none: the owner, which has the values first
  std::vector<uint32_t> children;

  friend bool operator==(const SpreadNode&, const SpreadNode&) = default;
};

struct PlanOptions {
  Algorithm algorithm = Algorithm::kRing;  // not kAutomatic
  uint32_t size = 1;                       // members
  // The location of each member, by rank; used only by the hierarchical plan. Empty = unknown.
  std::vector<TopologyPath> paths;
};

// A collective algorithm as trees: for each owner of a part and each stripe of the part, a
// reduction tree with the owner as its root, and a spreading tree from it. Used by the runner
// (worker/collective/collective_run.h), the cost model and tests alike.
//
//   ring, owner 0 of 4:  reduce 1 -> 2 -> 3 -> 0, spread 0 -> 1 -> 2 -> 3
//
// Pure: every member computes the same plan from the same options. Immutable. A look-up costs O(log
// N + size of the result); construction costs O(N log N).
class Plan {
 public:
  // Preconditions: size >= 1; an algorithm; one path per member or none.
  explicit Plan(PlanOptions options);

  Algorithm algorithm() const { return algorithm_; }
  uint32_t size() const { return size_; }
  // Number of pieces into which each part is cut; each piece has its own trees. At least 1.
  uint32_t stripes() const { return static_cast<uint32_t>(strides_.size()); }

  // Preconditions: ranks < size, stripe < stripes().
  ReduceNode Reduce(uint32_t owner, uint32_t stripe, uint32_t rank) const;
  SpreadNode Spread(uint32_t owner, uint32_t stripe, uint32_t rank) const;

 private:
  TreeLinks LinksOf(uint32_t owner, uint32_t rank) const;

  Algorithm algorithm_;
  uint32_t size_;
  std::vector<uint32_t> strides_;                        // one per stripe
  std::optional<HierarchicalTrees> hierarchical_trees_;  // of that algorithm only
};

}  // namespace covey

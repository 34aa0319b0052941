// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cluster/topology.h"
#include "common/collective/tree_links.h"

namespace covey {

// The trees of Algorithm::kHierarchical. The members of each domain of the topology gather at the
// domain's representative for the owner, and the representatives at that of the domain above.
// Different owners have different representatives, so that all links are busy. Owned by a Plan.
//
// Pure and immutable. Construction costs O(N log N).
class HierarchicalTrees {
 public:
  // The location of each member, by rank. Preconditions: not empty.
  explicit HierarchicalTrees(std::span<const TopologyPath> paths);

  // `rank`'s links in the tree whose root is `owner`. Preconditions: ranks of members. O(log N +
  // size of the result).
  TreeLinks LinksOf(uint32_t owner, uint32_t rank) const;

 private:
  // Members of a place, as the range [begin, end) of `order_`, and the places within it.
  struct Domain {
    uint32_t begin = 0;
    uint32_t end = 0;
    std::vector<uint32_t> children;  // indices into domains_; none = one member
  };

  uint32_t AddDomain(std::span<const TopologyPath> paths, uint32_t begin, uint32_t end,
                     size_t level);
  bool Holds(const Domain& domain, uint32_t rank) const;
  size_t ChildWith(const Domain& domain, uint32_t rank) const;
  uint32_t Representative(const Domain& domain, const Domain& home, uint32_t owner) const;

  std::vector<uint32_t> order_;  // ranks, neighbors together
  std::vector<uint32_t> place_;  // of each rank in order_
  std::vector<Domain> domains_;  // the last one has all members
};

}  // namespace covey

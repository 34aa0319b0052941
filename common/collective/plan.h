// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/cluster/topology.h"
#include "common/collective/algorithm.h"
#include "common/collective/part_range.h"

namespace covey {

// The effect of a collective on a tensor that is cut into one part per member (part i is that of
// member i):
//   reduce-scatter  every member has all parts -> member i has the sum of part i
//   all-gather      member i has part i        -> every member has all parts
//   all-reduce      both, one after the other
//   broadcast       the root has the tensor    -> every member has it
//   barrier         no data: no member leaves before all have arrived
enum class CollectiveKind { kReduceScatter, kAllGather, kAllReduce, kBroadcast, kBarrier };

// "all-reduce", for errors.
const char* CollectiveName(CollectiveKind kind);

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

  Algorithm algorithm() const { return options_.algorithm; }
  uint32_t size() const { return options_.size; }
  // Number of pieces into which each part is cut; each piece has its own trees. At least 1.
  uint32_t stripes() const { return static_cast<uint32_t>(strides_.size()); }

  // Preconditions: ranks < size, stripe < stripes().
  ReduceNode Reduce(uint32_t owner, uint32_t stripe, uint32_t rank) const;
  SpreadNode Spread(uint32_t owner, uint32_t stripe, uint32_t rank) const;

 private:
  // Members of a place, as the range [begin, end) of `order_`, and the places within it.
  struct Domain {
    uint32_t begin = 0;
    uint32_t end = 0;
    std::vector<uint32_t> children;  // indices into domains_; none = one member
  };
  struct Links {
    std::optional<uint32_t> parent;
    std::vector<uint32_t> children;  // in the order of summation, after the member's own values
  };

  void BuildDomains();
  uint32_t AddDomain(uint32_t begin, uint32_t end, size_t level);
  Links LinksOf(uint32_t owner, uint32_t rank) const;
  Links HierarchicalLinks(uint32_t owner, uint32_t rank) const;
  bool Holds(const Domain& domain, uint32_t rank) const;
  size_t ChildWith(const Domain& domain, uint32_t rank) const;
  uint32_t Representative(const Domain& domain, const Domain& home, uint32_t owner) const;

  PlanOptions options_;
  std::vector<uint32_t> strides_;  // one per stripe
  // Hierarchical only.
  std::vector<uint32_t> order_;  // ranks, neighbors together
  std::vector<uint32_t> place_;  // of each rank in order_
  std::vector<Domain> domains_;  // the last one has all members
};

// A range of the tensor that travels along one pair of trees.
struct Section {
  uint32_t owner = 0;
  uint32_t stripe = 0;
  PartRange range;

  friend bool operator==(const Section&, const Section&) = default;
};

bool HasReduction(CollectiveKind kind);
bool HasSpreading(CollectiveKind kind);

// The sections of one collective, in growing order of elements. For reduce-scatter, all-gather and
// all-reduce, `parts` has one disjoint range per member. A broadcast sends all `element_count`
// elements from `root`; a barrier has one section without elements. Empty ranges are left out.
std::vector<Section> SectionsOf(const Plan& plan, CollectiveKind kind,
                                std::span<const PartRange> parts, size_t element_count,
                                uint32_t root);

}  // namespace covey

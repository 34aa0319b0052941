// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/simulate/cluster_options.h"
#include "common/cluster/link_costs.h"
#include "common/cluster/topology.h"
#include "common/collective/algorithm.h"
#include "common/collective/plan.h"

namespace covey::cli {

// A plan's trees, precomputed. A section is a stripe of a part: number owner * stripes + stripe.
// Immutable. Holds size^2 * stripes entries.
class Trees {
 public:
  struct Place {
    uint32_t operands = 0;
    // None: the owner.
    std::optional<uint32_t> parent;
    // In the spreading tree.
    std::vector<uint32_t> children;
  };

  explicit Trees(const Plan& plan);

  uint32_t sections() const { return sections_; }
  uint32_t stripes() const { return sections_ / size_; }
  uint32_t OwnerOf(uint32_t section) const { return section / stripes(); }
  const Place& at(uint32_t section, uint32_t rank) const {
    return places_[size_t{section} * size_ + rank];
  }

 private:
  const uint32_t size_;
  const uint32_t sections_;
  std::vector<Place> places_;
};

// The members that synchronize in a step, and their plan. Immutable.
struct Membership {
  // By rank.
  std::vector<uint32_t> nodes;
  Algorithm algorithm = Algorithm::kRing;
  // For collectives that are simulated as messages.
  std::shared_ptr<const Trees> trees;
  // For the other collectives: their duration for one tensor, and the bytes that each rack sends
  // and receives over its uplink.
  struct Time {
    absl::Duration latency;
    absl::Duration transfer;
  };
  Time reduce;
  Time spread;
  std::vector<double> uplink_bytes;

  uint32_t size() const { return static_cast<uint32_t>(nodes.size()); }
};

// The link costs for cost model and group planner.
LinkCosts LinkCostsOf(const LinkOptions& links);

// The location of each node of a cluster.
std::vector<TopologyPath> PathsOfNodes(const ClusterOptions& options);

// `nodes` in the group planner's order: neighbors in the topology are adjacent. `paths` are those
// of all nodes. `messages`: with trees, else with times. Pure.
std::shared_ptr<const Membership> MakeMembership(const ClusterOptions& options,
                                                 const std::vector<TopologyPath>& paths,
                                                 std::vector<uint32_t> nodes, bool messages);

}  // namespace covey::cli

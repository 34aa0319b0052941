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
#include "common/collective/plan.h"

namespace covey::cli {

// A plan's trees, looked up once. A section is a stripe of a part: number owner * stripes + stripe.
// Immutable. Holds size^2 * stripes places.
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

// Who synchronises in a step, and how. Immutable.
struct Membership {
  // By rank.
  std::vector<uint32_t> nodes;
  Algorithm algorithm = Algorithm::kRing;
  // For collectives that are simulated as messages.
  std::shared_ptr<const Trees> trees;
  // For the others: how long they take for one tensor, and per rack what they send and receive over
  // its uplink.
  struct Time {
    absl::Duration latency;
    absl::Duration transfer;
  };
  Time reduce;
  Time spread;
  std::vector<double> uplink_bytes;

  uint32_t size() const { return static_cast<uint32_t>(nodes.size()); }
};

// The links as cost model and group planner see them.
LinkCosts LinkCostsOf(const LinkOptions& links);

// Where each node of a cluster is.
std::vector<TopologyPath> PathsOfNodes(const ClusterOptions& options);

// `nodes` as they come from the group planner: neighbours in the topology are neighbours. `paths`
// are those of all nodes. `messages`: with trees, else with times. Pure.
std::shared_ptr<const Membership> MakeMembership(const ClusterOptions& options,
                                                 const std::vector<TopologyPath>& paths,
                                                 std::vector<uint32_t> nodes, bool messages);

}  // namespace covey::cli

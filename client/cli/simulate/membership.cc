// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/membership.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/collective/collective_kind.h"
#include "common/collective/cost_model.h"

namespace covey::cli {

Trees::Trees(const Plan& plan) : size_(plan.size()), sections_(plan.size() * plan.stripes()) {
  places_.resize(size_t{sections_} * size_);
  for (uint32_t section = 0; section < sections_; ++section) {
    const uint32_t owner = OwnerOf(section);
    const uint32_t stripe = section % stripes();
    for (uint32_t rank = 0; rank < size_; ++rank) {
      const ReduceNode reduce = plan.Reduce(owner, stripe, rank);
      places_[size_t{section} * size_ + rank] = {
          .operands = static_cast<uint32_t>(reduce.operands.size()),
          .parent = reduce.parent,
          .children = plan.Spread(owner, stripe, rank).children};
    }
  }
}

std::vector<TopologyPath> PathsOfNodes(const ClusterOptions& options) {
  std::vector<TopologyPath> paths;
  const std::vector<uint32_t> racks = RacksOfNodes(options.nodes, options.racks);
  for (uint32_t node = 0; node < options.nodes; ++node) {
    // Numbers are zero-padded, so that names sort in the order of numbers.
    paths.push_back(ParseTopologyPath(absl::StrCat("/", absl::Dec(racks[node], absl::kZeroPad6),
                                                   "/", absl::Dec(node, absl::kZeroPad6))));
  }
  return paths;
}

LinkCosts LinkCostsOf(const LinkOptions& links) {
  const LinkCost between_racks = {.latency_seconds = absl::ToDoubleSeconds(links.uplink_latency),
                                  .bytes_per_second = links.node_bytes_per_second};
  LinkCost in_rack = between_racks;
  in_rack.latency_seconds = absl::ToDoubleSeconds(links.rack_latency);
  if (links.uplink_bytes_per_second > 0) {
    in_rack.uplink_bytes_per_second = links.uplink_bytes_per_second;
  }
  // Each node is a host of its own, so nothing is nearer than a rack.
  LinkCost in_host = in_rack;
  in_host.uplink_bytes_per_second = std::numeric_limits<double>::infinity();
  LinkCosts costs;
  costs.levels = {in_host, in_host, in_rack, between_racks, between_racks};
  costs.message_seconds = absl::ToDoubleSeconds(links.message_time);
  costs.flow_loss = 0;
  return costs;
}

namespace {

struct Cost {
  Algorithm algorithm = Algorithm::kRing;
  Prediction reduce;
  Prediction spread;

  double seconds() const { return reduce.seconds + spread.seconds; }
};

Cost CostOf(const PlanOptions& options, uint64_t bytes, const LinkCosts& costs) {
  const Plan plan(options);
  return {.algorithm = options.algorithm,
          .reduce = Predict(plan, CollectiveKind::kReduceScatter, bytes, options.paths, costs),
          .spread = Predict(plan, CollectiveKind::kAllGather, bytes, options.paths, costs)};
}

Cost Cheapest(PlanOptions options, uint64_t bytes, const LinkCosts& costs) {
  if (options.algorithm != Algorithm::kAutomatic) return CostOf(options, bytes, costs);
  std::optional<Cost> cheapest;
  for (const Algorithm algorithm : kAlgorithms) {
    options.algorithm = algorithm;
    Cost cost = CostOf(options, bytes, costs);
    if (!cheapest || cost.seconds() < cheapest->seconds()) cheapest = std::move(cost);
  }
  return *std::move(cheapest);
}

// The bytes that cross between racks when each section travels up and down its trees. With many
// members, an even sample of the sections represents all.
double BytesBetweenRacks(const Plan& plan, const std::vector<uint32_t>& rack_of_rank,
                         double bytes) {
  const uint32_t sections = plan.size() * plan.stripes();
  const auto counted =
      static_cast<uint32_t>(std::clamp<size_t>(kEdgesMax / plan.size(), 1, sections));
  double hops = 0;
  for (uint32_t i = 0; i < counted; ++i) {
    const auto section = static_cast<uint32_t>(uint64_t{i} * sections / counted);
    const uint32_t owner = section / plan.stripes();
    const uint32_t stripe = section % plan.stripes();
    for (uint32_t rank = 0; rank < plan.size(); ++rank) {
      const auto crosses = [&](const std::optional<uint32_t>& parent) {
        return parent.has_value() && rack_of_rank[*parent] != rack_of_rank[rank];
      };
      hops += crosses(plan.Reduce(owner, stripe, rank).parent);
      hops += crosses(plan.Spread(owner, stripe, rank).parent);
    }
  }
  return hops / counted * bytes;
}

}  // namespace

std::shared_ptr<const Membership> MakeMembership(const ClusterOptions& options,
                                                 const std::vector<TopologyPath>& paths,
                                                 std::vector<uint32_t> nodes, bool messages) {
  PlanOptions plan = {.algorithm = options.collective, .size = static_cast<uint32_t>(nodes.size())};
  for (const uint32_t node : nodes) plan.paths.push_back(paths[node]);
  const uint64_t bytes = options.gradient_bytes / options.tensors;
  const Cost cost = Cheapest(plan, bytes, LinkCostsOf(options.links));
  auto membership = std::make_shared<Membership>();
  membership->algorithm = plan.algorithm = cost.algorithm;
  const auto time = [](const Prediction& prediction) {
    return Membership::Time{.latency = absl::Seconds(prediction.latency_seconds),
                            .transfer = absl::Seconds(prediction.transfer_seconds)};
  };
  membership->reduce = time(cost.reduce);
  membership->spread = time(cost.spread);
  if (messages) {
    membership->trees = std::make_shared<Trees>(Plan(std::move(plan)));
  } else {
    const std::vector<uint32_t> racks = RacksOfNodes(options.nodes, options.racks);
    std::vector<uint32_t> rack_of_rank;
    for (const uint32_t node : nodes) rack_of_rank.push_back(racks[node]);
    const double moved =
        BytesBetweenRacks(Plan(std::move(plan)), rack_of_rank, static_cast<double>(bytes));
    // Leaves one rack and enters another; racks with more members carry more of it.
    membership->uplink_bytes.assign(options.racks, 0);
    for (const uint32_t rack : rack_of_rank) {
      membership->uplink_bytes[rack] += 2 * moved / static_cast<double>(nodes.size());
    }
  }
  membership->nodes = std::move(nodes);
  return membership;
}

}  // namespace covey::cli

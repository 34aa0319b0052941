// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "absl/strings/str_cat.h"
#include "common/collective/cost_model.h"

namespace covey::cli {
namespace {

constexpr absl::Time kStart = absl::UnixEpoch();

struct Times {
  double reduce = 0;
  double spread = 0;
};

// One exchange alone in its cluster, with all members at the same time and the servers nearby.
Times Alone(const ClusterOptions& options, bool messages) {
  Simulator simulator(1);
  Fabric fabric(options.links, RacksOfNodes(options.nodes, options.racks), options.servers);
  std::vector<uint32_t> nodes(options.nodes);
  std::iota(nodes.begin(), nodes.end(), 0);
  const auto membership = MakeMembership(options, PathsOfNodes(options), nodes, messages);
  Times times;
  double returned = 0;
  uint32_t gathered = 0;
  absl::Time links_free = absl::InfinitePast();
  const auto now = [&] { return absl::ToDoubleSeconds(simulator.now() - kStart); };
  const auto make = messages ? MakeMessageExchange : MakeModelExchange;
  std::shared_ptr<Exchange> exchange =
      make({simulator, fabric, links_free}, membership,
           {.bytes = static_cast<double>(options.gradient_bytes), .push = false, .await = true},
           {.arrived = nullptr,
            .reduced =
                [&] {
                  times.reduce = now();
                  // Delayed, so that both phases can be timed.
                  simulator.After(absl::Seconds(1), [&] { exchange->Answer(); });
                },
            .returned = [&] { returned = now(); },
            .gathered =
                [&](uint32_t) {
                  ++gathered;
                  times.spread = now() - returned;
                }});
  for (uint32_t rank = 0; rank < options.nodes; ++rank) exchange->Submit(rank);
  while (simulator.RunOne(kStart + absl::Hours(1))) {
  }
  EXPECT_EQ(gathered, options.nodes);
  return times;
}

struct Shape {
  uint32_t nodes;
  uint32_t racks;
  // As a multiple of a node's link; 0 = unlimited.
  double uplink;
};

ClusterOptions OptionsOf(const Shape& shape, Algorithm algorithm, uint64_t bytes) {
  ClusterOptions options;
  options.nodes = shape.nodes;
  options.racks = shape.racks;
  options.gradient_bytes = bytes;
  options.collective = algorithm;
  options.links.uplink_bytes_per_second = shape.uplink * options.links.node_bytes_per_second;
  options.links.server_bytes_per_second = 1e18;
  options.links.server_latency = absl::ZeroDuration();
  options.links.message_time = absl::ZeroDuration();
  return options;
}

// The cost model's lower bound and, where levels of links wait for each other, its upper bound.
struct Bounds {
  double low;
  double high;
};
Bounds BoundsOf(const ClusterOptions& options, CollectiveKind kind) {
  const std::vector<TopologyPath> paths = PathsOfNodes(options);
  const Plan plan({.algorithm = options.collective, .size = options.nodes, .paths = paths});
  const Prediction prediction =
      Predict(plan, kind, options.gradient_bytes, paths, LinkCostsOf(options.links));
  return {prediction.seconds, prediction.stepwise_seconds};
}

constexpr Shape kShapes[] = {{8, 1, 0}, {13, 1, 0}, {16, 2, 2}, {64, 1, 0}, {64, 8, 0}, {64, 8, 2}};

// Two models of the same duration that share only the trees: queues of messages, and loads of
// links.
TEST(ExchangeTest, MessagesTakeAsLongAsTheCostModelSays) {
  for (const Shape& shape : kShapes) {
    for (const uint64_t mib : {32, 128}) {
      for (const Algorithm algorithm : kAlgorithms) {
        // Its stripes overlap the hops of smaller tensors, which the model adds up.
        if (algorithm == Algorithm::kMultiRing && mib < 128) continue;
        const ClusterOptions options = OptionsOf(shape, algorithm, mib << 20);
        const Times messages = Alone(options, /*messages=*/true);
        SCOPED_TRACE(absl::StrCat(AlgorithmName(algorithm), ", ", shape.nodes, " nodes in ",
                                  shape.racks, " racks, uplink ", shape.uplink, ", ", mib, " MiB"));
        // Only the hierarchical plan crosses a narrow uplink in a phase of its own.
        const bool phases = algorithm == Algorithm::kHierarchical && shape.uplink > 0;
        const Bounds reduce = BoundsOf(options, CollectiveKind::kReduceScatter);
        EXPECT_GE(messages.reduce, 0.95 * reduce.low);
        EXPECT_LE(messages.reduce, 1.05 * (phases ? reduce.high : reduce.low));
        // Through a narrow uplink, owners get their values one after another.
        if (shape.uplink > 0) continue;
        const Bounds spread = BoundsOf(options, CollectiveKind::kAllGather);
        EXPECT_GE(messages.spread, 0.95 * spread.low);
        EXPECT_LE(messages.spread, 1.05 * spread.low);
      }
    }
  }
}

TEST(ExchangeTest, SmallTensorsTakeTheLatencyOfTheLongestWay) {
  for (const Shape& shape : {Shape{8, 1, 0}, Shape{64, 1, 0}, Shape{64, 8, 0}}) {
    for (const Algorithm algorithm :
         {Algorithm::kDirect, Algorithm::kRing, Algorithm::kHalvingDoubling, Algorithm::kTree}) {
      const ClusterOptions options = OptionsOf(shape, algorithm, 1024);
      const double messages = Alone(options, /*messages=*/true).reduce;
      const double model = BoundsOf(options, CollectiveKind::kReduceScatter).low;
      EXPECT_NEAR(messages / model, 1, 0.05)
          << AlgorithmName(algorithm) << ", " << shape.nodes << " nodes";
    }
  }
}

TEST(ExchangeTest, TheModelTakesItsOwnTimes) {
  const ClusterOptions options = OptionsOf({16, 2, 2}, Algorithm::kRing, 64 << 20);
  const Times times = Alone(options, /*messages=*/false);
  EXPECT_NEAR(times.reduce, BoundsOf(options, CollectiveKind::kReduceScatter).low, 1e-6);
  EXPECT_NEAR(times.spread, BoundsOf(options, CollectiveKind::kAllGather).low, 1e-6);
}

// A direct exchange waits for a loop that is busy with many small messages.
TEST(ExchangeTest, MessagesWaitForTheLoop) {
  ClusterOptions options = OptionsOf({64, 1, 0}, Algorithm::kDirect, 1024);
  const double idle = Alone(options, /*messages=*/true).reduce;
  options.links.message_time = absl::Microseconds(5);
  const double busy = Alone(options, /*messages=*/true).reduce;
  // 63 messages sent and 63 received.
  EXPECT_NEAR(busy - idle, 126 * 5e-6, 0.1 * 126 * 5e-6);
}

TEST(FabricTest, MessagesOnALinkQueueAndOthersDoNot) {
  const LinkOptions links = {.node_bytes_per_second = 1e6,
                             .uplink_bytes_per_second = 2e6,
                             .server_bytes_per_second = 1e6,
                             .message_time = absl::ZeroDuration(),
                             .rack_latency = absl::ZeroDuration(),
                             .uplink_latency = absl::ZeroDuration(),
                             .server_latency = absl::ZeroDuration()};
  Fabric fabric(links, RacksOfNodes(8, 2), /*servers=*/2);
  const auto seconds = [](absl::Time time) { return absl::ToDoubleSeconds(time - kStart); };
  EXPECT_NEAR(seconds(fabric.Send(kStart, 0, 1, 1e6)), 1, 1e-9);
  EXPECT_NEAR(seconds(fabric.Send(kStart, 0, 2, 1e6)), 2, 1e-9) << "the sender's link is taken";
  EXPECT_NEAR(seconds(fabric.Send(kStart, 1, 0, 1e6)), 1, 1e-9) << "the other direction is free";
  // Three transfers at once over an uplink with twice the rate of a link.
  const absl::Time later = kStart + absl::Seconds(10);
  fabric.Send(later, 0, 4, 1e6);
  fabric.Send(later, 1, 5, 1e6);
  EXPECT_NEAR(seconds(fabric.Send(later, 2, 6, 1e6)), 11.5, 1e-9);
  EXPECT_THAT(fabric.uplink_bytes(), testing::ElementsAre(3e6, 3e6));
  // Four nodes push a quarter each; two servers have twice the rate of a link.
  EXPECT_NEAR(seconds(fabric.AllSendToServers(kStart + absl::Seconds(20), {0, 1, 2, 3}, 4e6)), 22,
              1e-9);
  EXPECT_NEAR(fabric.uplink_bytes()[0], 7e6, 1e-3);
}

}  // namespace
}  // namespace covey::cli

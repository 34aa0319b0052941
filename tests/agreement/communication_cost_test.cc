// SPDX-License-Identifier: Apache-2.0

// The group planner's closed-form estimate agrees with the full cost model of the collectives.

#include <cmath>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/collective/cost_model.h"
#include "common/grouping/throughput_model.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

std::vector<TopologyPath> Paths(size_t racks, size_t hosts, size_t devices) {
  std::vector<TopologyPath> paths;
  for (size_t rack = 0; rack < racks; ++rack) {
    for (size_t host = 0; host < hosts; ++host) {
      for (size_t device = 0; device < devices; ++device) {
        paths.push_back(ParseTopologyPath(
            absl::StrCat("z/r", rack, "/h", host, devices > 1 ? absl::StrCat("/d", device) : "")));
      }
    }
  }
  return paths;
}

TEST(CommunicationCostTest, TheGroupPlannerExpectsAboutTheSame) {
  Random random(3);
  for (int round = 0; round < 60; ++round) {
    const std::vector<TopologyPath> paths =
        Paths(1 + random.Below(3), 1 + random.Below(4), 1 + random.Below(3));
    if (paths.size() < 2) continue;
    ThroughputParameters model;
    model.gradient_bytes = std::pow(10, 5 + 3 * random.Uniform());
    model.costs.message_seconds = 0;
    model.costs.at(Level::kRack).uplink_bytes_per_second = 1e9 * (0.2 + random.Uniform());
    std::vector<PlannedWorker> workers;
    std::vector<uint32_t> members;
    for (uint32_t i = 0; i < paths.size(); ++i) {
      workers.push_back({.node = NodeId(i + 2), .rank = i, .labels = FormatTopologyPath(paths[i])});
      members.push_back(i);
    }
    const double expected = ThroughputModel(workers, model).Rate(members).communication_seconds;
    const AlgorithmChoice choice = ChooseAlgorithm(
        CollectiveKind::kAllReduce, static_cast<size_t>(model.gradient_bytes), paths, model.costs);
    EXPECT_GT(expected / choice.prediction.seconds, 0.6) << paths.size() << choice.Explain();
    EXPECT_LT(expected / choice.prediction.seconds, 1.8) << paths.size() << choice.Explain();
  }
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0

// The time in which groups of a large cluster are planned. It is that of the thread, so that other
// programs do not count.

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/log.h"
#include "common/base/random.h"
#include "common/grouping/group_planner.h"
#include "common/grouping/throughput_model.h"
#include "gtest/gtest.h"
#include "tests/soak/thread_seconds.h"

namespace covey {
namespace {

constexpr uint32_t kNodes = 9600;
constexpr uint32_t kRacks = 50;

// Speeds differ by a tenth, and one node in a hundred is four times slower.
std::vector<PlannedWorker> Cluster(uint64_t seed) {
  Random random(seed);
  std::vector<PlannedWorker> workers;
  for (uint32_t i = 0; i < kNodes; ++i) {
    workers.push_back({.node = NodeId(i + 10),
                       .rank = i,
                       .labels = absl::StrCat("zone/rack-", i % kRacks, "/host-", i),
                       .speed = 100 * (1 - 0.1 * random.Uniform())});
    if (random.Chance(0.01)) workers.back().speed = 25;
  }
  return workers;
}

class PlanTimeTest : public ::testing::TestWithParam<size_t> {};
// 0 = the planner chooses the number of groups.
INSTANTIATE_TEST_SUITE_P(Groups, PlanTimeTest, ::testing::Values(0, 4, 16, 50, 200));

TEST_P(PlanTimeTest, OfTenThousandNodesIsBelowASecond) {
  ThroughputParameters model;
  model.gradient_bytes = model.pushed_bytes = 20e6;
  model.costs.at(Level::kRack).uplink_bytes_per_second = 0.3e9;
  model.noise_sigma = 0.08;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const std::vector<PlannedWorker> workers = Cluster(seed);
    GroupPlan plan;
    const double seconds = ThreadSecondsOf(
        [&] { plan = PlanGroups(workers, {.groups = GetParam(), .model = model}); });
    LogInfo("planned", {{"nodes", kNodes}, {"groups", plan.groups.size()}, {"seconds", seconds}});
    EXPECT_LT(seconds, 1);
    EXPECT_FALSE(plan.groups.empty());
  }
}

}  // namespace
}  // namespace covey

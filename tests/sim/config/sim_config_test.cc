// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/config/sim_config.h"

#include <gtest/gtest.h>

#include "tests/sim/config/elasticity.h"

namespace covey::sim {
namespace {

TEST(SimConfigTest, EveryConfigurationIsValid) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const SimConfig config = DrawConfig(Random(seed), 1);
    EXPECT_TRUE(config.scheduler.Validate().ok()) << seed;
    EXPECT_GE(config.servers, 1u);
    EXPECT_GT(config.safety, absl::ZeroDuration());
  }
}

TEST(ElasticityTest, IsInOrderAndSparesTheFirstServer) {
  size_t drains = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const Elasticity elasticity = DrawElasticity(Random(seed), 3, absl::Seconds(10));
    absl::Duration last;
    for (const ElasticAction& action : elasticity.actions) {
      EXPECT_GE(action.at, last);
      last = action.at;
      EXPECT_NE(action.name, "server-0");
      EXPECT_TRUE(action.kind != ElasticAction::Kind::kScaleServers || action.number > 0);
      if (action.kind == ElasticAction::Kind::kDrain) ++drains;
    }
  }
  EXPECT_GT(drains, 50u);
}

}  // namespace
}  // namespace covey::sim

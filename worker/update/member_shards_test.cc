// SPDX-License-Identifier: Apache-2.0
#include "worker/update/member_shards.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

MemberShards Make(const MemberShards::Config& config, std::vector<size_t> shards) {
  auto owned = MemberShards::Create(config, shards);
  EXPECT_TRUE(owned.ok()) << owned.status();
  return *std::move(owned);
}

TEST(MemberShardsTest, LearnsByTheTablesOptimizerAndSchedule) {
  MemberShards owned = Make({.optimizer = {.kind = OptimizerKind::kMomentum, .momentum = 0.5},
                             .learning_rate = {.base_rate = 1, .warmup_samples = 8}},
                            {2, 1});
  const std::vector<float> sum = {4, 8, -4};
  // After 4 of 8 samples of the warm-up the rate is 1/2; the mean gradient is 1, 2, -1.
  ASSERT_TRUE(owned.Apply(sum, 4).ok());
  EXPECT_THAT(owned.values(), testing::ElementsAre(-0.5f, -1, 0.5f));
  // The rate is 1, and velocity = 0.5 * old + new.
  ASSERT_TRUE(owned.Apply(sum, 4).ok());
  EXPECT_THAT(owned.values(), testing::ElementsAre(-2, -4, 2));
}

TEST(MemberShardsTest, EachShardIsUpdatedOnItsOwn) {
  // The rate of LARS depends on norms over a shard.
  const MemberShards::Config config{.optimizer = {.kind = OptimizerKind::kLars, .momentum = 0},
                                    .learning_rate = {.base_rate = 1}};
  MemberShards two = Make(config, {2, 2});
  MemberShards one = Make(config, {4});
  const std::vector<float> values = {1, 1, 10, 10};
  const std::vector<float> sum = {1, 1, 1, 1};
  std::copy(values.begin(), values.end(), two.values().begin());
  std::copy(values.begin(), values.end(), one.values().begin());
  ASSERT_TRUE(two.Apply(sum, 1).ok());
  ASSERT_TRUE(one.Apply(sum, 1).ok());
  EXPECT_FLOAT_EQ(two.values()[0], 1 - 0.001f);
  EXPECT_FLOAT_EQ(two.values()[2], 10 - 0.01f);
  EXPECT_NE(one.values()[0], two.values()[0]);
}

TEST(MemberShardsTest, ScreensGradientsAsTheTableSays) {
  const std::vector<float> sum = {1, std::numeric_limits<float>::quiet_NaN()};
  MemberShards careful = Make({.learning_rate = {.base_rate = 1}}, {2});
  const absl::Status refused = careful.Apply(sum, 1);
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("NaN or infinity"));
  EXPECT_THAT(careful.values(), testing::ElementsAre(0, 0));
  MemberShards bold = Make({.learning_rate = {.base_rate = 1}, .refuses_non_finite = false}, {2});
  ASSERT_TRUE(bold.Apply(sum, 1).ok());
  EXPECT_EQ(bold.values()[0], -1);
  EXPECT_TRUE(std::isnan(bold.values()[1]));
}

TEST(MemberShardsTest, RefusesADefinitionThatMakesNoSense) {
  const std::vector<size_t> shards = {1};
  EXPECT_FALSE(MemberShards::Create({.learning_rate = {.base_rate = -1}}, shards).ok());
  EXPECT_FALSE(MemberShards::Create({.optimizer = {.weight_decay = 2}}, shards).ok());
}

}  // namespace
}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "common/contract/momentum_governor.h"

#include <cmath>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::HasSubstr;
using Setting = MomentumGovernor::Setting;

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};

TEST(MomentumGovernorTest, ASynchronousRunIsLeftAsItIsToTheLastBit) {
  for (const double target : {0.0, 0.1, 0.7, 0.9, 0.999}) {
    MomentumGovernor governor(target);
    for (int update = 0; update < 1000; ++update) {
      governor.ObservePush(0);
      // One group that pushes on arrival, and four in lockstep.
      EXPECT_EQ(governor.BeginUpdate({.pushes = 1, .groups = 1}), (Setting{target, 1}));
      EXPECT_EQ(governor.BeginUpdate({.pushes = 4, .groups = 4, .on_arrival = false}),
                (Setting{target, 1}));
    }
    EXPECT_FALSE(governor.cannot_hold());
  }
}

TEST(MomentumGovernorTest, SubtractsWhatAsynchronyAdds) {
  MomentumGovernor governor(0.9);
  for (int push = 0; push < 100; ++push) governor.ObservePush(3);
  EXPECT_DOUBLE_EQ(governor.staleness(), 3);
  EXPECT_DOUBLE_EQ(governor.implicit_momentum(), 0.75);
  const auto setting = governor.BeginUpdate({.pushes = 1, .groups = 4});
  EXPECT_NEAR(setting->momentum, 0.15, 1e-12);
  EXPECT_NEAR(governor.explicit_momentum(), 0.15, 1e-12);
}

// Per round of all groups a constant gradient moves the values as far as in a synchronous run.
TEST(MomentumGovernorTest, KeepsTheDisplacementPerRound) {
  for (const double groups : {1.0, 2.0, 4.0, 8.0, 16.0}) {
    for (const double target : {0.0, 0.5, 0.9}) {
      MomentumGovernor governor(target);
      for (int push = 0; push < 100; ++push) governor.ObservePush(groups - 1);
      const auto setting =
          governor.BeginUpdate({.pushes = 1, .groups = static_cast<size_t>(groups)});
      EXPECT_NEAR(groups * setting->rate_factor / (1 - setting->momentum), 1 / (1 - target), 1e-9);
    }
  }
  // Two pushes per update of eight groups: four updates per round.
  MomentumGovernor buffered(0.5);
  buffered.ObservePush(0.25);
  const auto setting = buffered.BeginUpdate({.pushes = 2, .groups = 8, .on_arrival = false});
  EXPECT_NEAR(setting->momentum, 0.3, 1e-12);
  EXPECT_NEAR(4 * setting->rate_factor / (1 - setting->momentum), 1 / (1 - 0.5), 1e-12);
}

TEST(MomentumGovernorTest, TakesGroupsToBeEquallyFastUntilItKnows) {
  MomentumGovernor governor(0.9);
  EXPECT_NEAR(governor.BeginUpdate({.pushes = 1, .groups = 4})->momentum, 0.15, 1e-12);
  EXPECT_EQ(governor.BeginUpdate({.pushes = 1, .groups = 0}), (Setting{0.9, 1}));
  governor.ObservePush(1);
  EXPECT_NEAR(governor.BeginUpdate({.pushes = 1, .groups = 4})->momentum, 0.4, 1e-12);
}

TEST(MomentumGovernorTest, FollowsAChangeOfTheNumberOfGroups) {
  MomentumGovernor governor(0.9);
  Random random(1);
  const auto observe = [&](double mean, uint64_t pushes) {
    // Geometric, as with memoryless groups.
    for (uint64_t i = 0; i < pushes; ++i) {
      governor.ObservePush(std::floor(std::log1p(-random.Uniform()) / std::log(mean / (1 + mean))));
    }
  };
  observe(7, 4 * MomentumGovernor::kPushesAveraged);
  EXPECT_NEAR(governor.implicit_momentum(), 7.0 / 8, 0.02);
  observe(1, 8 * MomentumGovernor::kPushesAveraged);
  EXPECT_NEAR(governor.implicit_momentum(), 1.0 / 2, 0.04);
}

TEST(MomentumGovernorTest, SaysThatItCannotHoldTheTarget) {
  MomentumGovernor governor(0.5);
  const MomentumGovernor::Update update = {.pushes = 1, .groups = 4};
  for (uint64_t i = 0; i < MomentumGovernor::kUpdatesAboveTargetMax; ++i) {
    EXPECT_FALSE(governor.cannot_hold()) << i;
    governor.ObservePush(3);
    const auto setting = governor.BeginUpdate(update);
    EXPECT_EQ(setting->momentum, 0);
    EXPECT_NEAR(setting->rate_factor, 0.5, 1e-12);  // 1/4 of the round, over 1 - 0.5
  }
  EXPECT_TRUE(governor.cannot_hold());
  // After one update below the target, the count restarts.
  while (governor.staleness() > 1) governor.ObservePush(0);
  governor.BeginUpdate(update);
  EXPECT_FALSE(governor.cannot_hold());
  EXPECT_EQ(governor.updates_above_target(), 0u);
}

TEST(MomentumGovernorTest, WithoutATargetItOnlyMeasures) {
  MomentumGovernor governor(std::nullopt);
  governor.ObservePush(4);
  EXPECT_EQ(governor.BeginUpdate({}), std::nullopt);
  EXPECT_EQ(governor.staleness(), 4);
  EXPECT_FALSE(governor.cannot_hold());
}

proto::TableAsynchrony Report(uint64_t updates, double staleness, uint64_t above) {
  proto::TableAsynchrony report;
  report.set_table(3);
  report.set_updates(updates);
  report.set_staleness(staleness);
  report.set_implicit_momentum(ImplicitMomentum(staleness));
  report.set_target_momentum(0.9);
  report.set_updates_above_target(above);
  return report;
}

TEST(MergeAsynchronyTest, WeighsByUpdatesAndKeepsTheLeastRun) {
  proto::TableAsynchrony sum = Report(100, 10, 90);
  sum.set_discarded(1);
  proto::TableAsynchrony other = Report(300, 2, 40);
  other.set_discarded(2);
  other.set_explicit_momentum(0.4);
  MergeAsynchrony(other, sum);
  EXPECT_EQ(sum.updates(), 400u);
  EXPECT_EQ(sum.discarded(), 3u);
  EXPECT_NEAR(sum.staleness(), 4, 1e-12);
  EXPECT_NEAR(sum.explicit_momentum(), 0.3, 1e-12);
  EXPECT_EQ(sum.updates_above_target(), 40u);
  // A shard that has applied nothing reports nothing, whichever comes first.
  proto::TableAsynchrony nothing = Report(0, 0, 0);
  MergeAsynchrony(Report(10, 5, 7), nothing);
  EXPECT_EQ(nothing.staleness(), 5);
  EXPECT_EQ(nothing.updates_above_target(), 7u);
  MergeAsynchrony(Report(0, 0, 0), sum);
  EXPECT_NEAR(sum.staleness(), 4, 1e-12);
  EXPECT_EQ(sum.updates_above_target(), 40u);
}

TEST(FallBackToBufferedTest, WhenEveryServerHasBeenAboveTheTargetForLong) {
  const uint64_t max = MomentumGovernor::kUpdatesAboveTargetMax;
  const std::vector<proto::TableAsynchrony> reports = {Report(1000, 15, max),
                                                       Report(900, 15, max + 9), Report(0, 0, 0)};
  const auto change = FallBackToBuffered(kAsync, reports);
  ASSERT_TRUE(change.has_value());
  EXPECT_EQ(change->contract, (Contract{.kind = Contract::Kind::kBuffered}));
  EXPECT_THAT(change->evidence, HasSubstr("15.0 updates late"));
  EXPECT_THAT(change->evidence, HasSubstr("momentum 0.938, more than the 0.900"));
  EXPECT_THAT(change->evidence, HasSubstr("256 updates on each of 2 servers"));
  EXPECT_TRUE(FallBackToBuffered({.kind = Contract::Kind::kSsp, .staleness = 20}, reports));
}

TEST(FallBackToBufferedTest, NotWithoutCause) {
  const uint64_t max = MomentumGovernor::kUpdatesAboveTargetMax;
  std::vector<proto::TableAsynchrony> reports = {Report(1000, 15, max), Report(1000, 15, max - 1)};
  EXPECT_FALSE(FallBackToBuffered(kAsync, reports));  // one server not for long enough
  EXPECT_FALSE(FallBackToBuffered(kAsync, {}));
  reports[1].set_updates_above_target(max);
  EXPECT_TRUE(FallBackToBuffered(kAsync, reports));
  for (const Contract::Kind kind :
       {Contract::Kind::kBsp, Contract::Kind::kBuffered, Contract::Kind::kLocal}) {
    EXPECT_FALSE(FallBackToBuffered({.kind = kind}, reports));
  }
  for (proto::TableAsynchrony& report : reports) report.set_target_momentum(0);
  EXPECT_FALSE(FallBackToBuffered(kAsync, reports));  // not governed
}

}  // namespace
}  // namespace covey

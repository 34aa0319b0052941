// SPDX-License-Identifier: Apache-2.0
#include "common/contract/read_gate.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::HasSubstr;

constexpr Contract kBsp{.kind = Contract::Kind::kBsp};
constexpr Contract kSsp2{.kind = Contract::Kind::kSsp, .staleness = 2};
constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Contract kBuffered{.kind = Contract::Kind::kBuffered};
constexpr Contract kLocal{.kind = Contract::Kind::kLocal, .local_steps = 16};

class ReadGateTest : public ::testing::Test {
 protected:
  ReadGateTest() {
    clocks_.Advance(GroupId(1), Step(5));
    clocks_.Advance(GroupId(2), Step(3));
  }
  Freshness Now() const {
    return {.clocks = clocks_, .live_groups = live_, .version = Version(8), .age = age_};
  }
  bool Met(const Contract& contract, uint64_t step) const {
    proto::ReadBound bound;
    bound.set_step(step);
    return IsMet(ReadRequirement::Of(bound, contract), Now());
  }

  ClockVector clocks_;
  std::vector<LiveGroup> live_ = {{.id = GroupId(1)}, {.id = GroupId(2)}};
  absl::Duration age_ = absl::Milliseconds(100);
};

TEST_F(ReadGateTest, FollowsTheContract) {
  EXPECT_TRUE(Met(kBsp, 3));
  EXPECT_FALSE(Met(kBsp, 4));
  EXPECT_TRUE(Met(kSsp2, 5));
  EXPECT_FALSE(Met(kSsp2, 6));
  EXPECT_TRUE(Met(kAsync, 1000));
  EXPECT_TRUE(Met(kBuffered, 1000));
}

TEST_F(ReadGateTest, WaitsForLiveGroupsOnlyAndForThoseThatNeverPushed) {
  live_ = {{.id = GroupId(1)}};
  EXPECT_TRUE(Met(kBsp, 5));
  live_ = {{.id = GroupId(1)}, {.id = GroupId(7)}};
  EXPECT_FALSE(Met(kBsp, 1));
  EXPECT_TRUE(Met(kBsp, 0));
  live_ = {};
  EXPECT_TRUE(Met(kBsp, 100));
}

TEST_F(ReadGateTest, AsksAGroupFromItsFirstStepOn) {
  live_ = {{.id = GroupId(1)}, {.id = GroupId(7), .first_step = Step(5)}};
  EXPECT_TRUE(Met(kBsp, 4));
  EXPECT_FALSE(Met(kBsp, 5));
  EXPECT_TRUE(Met(kSsp2, 6));
  EXPECT_FALSE(Met(kSsp2, 7));
  proto::ReadBound bound;
  bound.set_step(5);
  EXPECT_EQ(Missing(ReadRequirement::Of(bound, kBsp), Now()), "group 7 is at step 0 of 5");
}

TEST_F(ReadGateTest, WaitsForAGroupWhoseStepsWereLostFromItsNextPushOn) {
  live_ = {{.id = GroupId(1)}, {.id = GroupId(2), .lost_after = Step(3)}};
  EXPECT_TRUE(Met(kSsp2, 7));
  EXPECT_FALSE(Met(kSsp2, 8)) << "group 1 is at step 5";
  clocks_.Advance(GroupId(2), Step(4));
  EXPECT_FALSE(Met(kSsp2, 7));
  clocks_.Advance(GroupId(2), Step(5));
  EXPECT_TRUE(Met(kSsp2, 7));
}

// Group 2 was too late for rounds 4 and 5, which are finished for it, too.
TEST_F(ReadGateTest, LocalWaitsForTheRoundNotForGroups) {
  EXPECT_TRUE(Met(kLocal, 5));
  EXPECT_FALSE(Met(kLocal, 6));
  proto::ReadBound bound;
  bound.set_step(6);
  EXPECT_EQ(Missing(ReadRequirement::Of(bound, kLocal), Now()), "the last round is 5 of 6");
  bound.set_step(5);
  bound.set_max_staleness(1);
  EXPECT_FALSE(IsMet(ReadRequirement::Of(bound, kLocal), Now()));
  bound.set_max_staleness(2);
  EXPECT_TRUE(IsMet(ReadRequirement::Of(bound, kLocal), Now()));
  live_ = {};
  EXPECT_TRUE(Met(kLocal, 6));
}

TEST_F(ReadGateTest, AReadersOwnBoundReplacesTheContracts) {
  proto::ReadBound bound;
  bound.set_step(5);
  bound.set_max_staleness(1);
  EXPECT_FALSE(IsMet(ReadRequirement::Of(bound, kAsync), Now()));
  bound.set_max_staleness(2);
  EXPECT_TRUE(IsMet(ReadRequirement::Of(bound, kBsp), Now()));
  bound.set_max_staleness(~uint64_t{0});
  EXPECT_TRUE(IsMet(ReadRequirement::Of(bound, kBsp), Now()));
}

TEST_F(ReadGateTest, BoundsVersionAndAge) {
  proto::ReadBound bound;
  bound.set_min_version(9);
  EXPECT_FALSE(IsMet(ReadRequirement::Of(bound, kAsync), Now()));
  bound.set_min_version(8);
  EXPECT_TRUE(IsMet(ReadRequirement::Of(bound, kAsync), Now()));
  bound.set_max_age_ms(99);
  EXPECT_FALSE(IsMet(ReadRequirement::Of(bound, kAsync), Now()));
  bound.set_max_age_ms(100);
  EXPECT_TRUE(IsMet(ReadRequirement::Of(bound, kAsync), Now()));
  bound.set_max_age_ms(~uint64_t{0});
  EXPECT_TRUE(IsMet(ReadRequirement::Of(bound, kAsync), Now()));
}

TEST_F(ReadGateTest, SaysWhatIsMissing) {
  proto::ReadBound bound;
  bound.set_step(5);
  EXPECT_EQ(Missing(ReadRequirement::Of(bound, kBsp), Now()), "group 2 is at step 3 of 5");
  bound.set_min_version(9);
  bound.set_max_age_ms(1);
  const std::string all = Missing(ReadRequirement::Of(bound, kBsp), Now());
  EXPECT_THAT(all, HasSubstr("the version is 8 of 9"));
  EXPECT_THAT(all, HasSubstr("100ms old"));
  for (uint32_t group = 3; group <= 100; ++group) live_.push_back({.id = GroupId(group)});
  EXPECT_LT(Missing(ReadRequirement::Of(bound, kBsp), Now()).size(), 400u);
}

TEST(ClockVector, NeverGoesBackAndHasADigest) {
  ClockVector clocks;
  clocks.Advance(GroupId(2), Step(4));
  clocks.Advance(GroupId(1), Step(1));
  clocks.Advance(GroupId(2), Step(3));
  EXPECT_EQ(clocks.StepOf(GroupId(2)), Step(4));
  EXPECT_EQ(clocks.StepOf(GroupId(9)), Step(0));
  proto::ShardState one;
  clocks.Describe(Version(5), one);
  ASSERT_EQ(one.clocks_size(), 2);
  EXPECT_EQ(one.clocks(0).group(), 1u);
  EXPECT_EQ(one.clocks(1).step(), 4u);
  proto::ShardState same;
  clocks.Describe(Version(5), same);
  EXPECT_EQ(one.clock_digest(), same.clock_digest());
  proto::ShardState later;
  clocks.Describe(Version(6), later);
  EXPECT_NE(one.clock_digest(), later.clock_digest());
}

}  // namespace
}  // namespace covey

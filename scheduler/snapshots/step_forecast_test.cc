// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/step_forecast.h"

#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr NodeId kFast(4);
constexpr NodeId kSlow(5);

proto::Group Group(uint32_t id = 1) {
  proto::Group group;
  group.set_id(id);
  group.add_members(kFast.value());
  group.add_members(kSlow.value());
  return group;
}

// Two heartbeats of each worker, one second apart: 10 and 8 steps per second.
class StepForecastTest : public ::testing::Test {
 protected:
  StepForecastTest() {
    Report(kStart, kFast, 0, 0);
    Report(kStart, kSlow, 0, 0);
    Report(Second(1), kFast, 10, 80);
    Report(Second(1), kSlow, 8, 64);
  }
  void Report(absl::Time at, NodeId worker, uint64_t step, uint64_t samples, uint32_t group = 1) {
    forecast_.OnProgress(
        at, worker,
        {.group = GroupId(group), .step = step, .samples = samples, .view_epoch = Epoch(7)});
  }
  static absl::Time Second(double seconds) { return kStart + absl::Seconds(seconds); }

  StepForecast forecast_;
};

TEST_F(StepForecastTest, FollowsTheFastestMember) {
  EXPECT_EQ(forecast_.StepAt(Group(), Second(1)), 10u);
  EXPECT_EQ(forecast_.StepAt(Group(), Second(2)), 20u);
  EXPECT_EQ(forecast_.StepAt(Group(), Second(2.01)), 21u) << "rather too late than too early";
  EXPECT_EQ(forecast_.StepAt(Group(), Second(0)), 10u) << "never behind what was reported";
}

TEST_F(StepForecastTest, KnowsAGroupWhoseMembersHaveAllReportedTwice) {
  EXPECT_TRUE(forecast_.Knows(Group()));
  proto::Group grown = Group();
  grown.add_members(6);
  EXPECT_FALSE(forecast_.Knows(grown));
  Report(Second(1), NodeId(6), 1, 8);
  EXPECT_FALSE(forecast_.Knows(grown));
  Report(Second(2), NodeId(6), 11, 88);
  EXPECT_TRUE(forecast_.Knows(grown));
  forecast_.OnDeparture(kSlow);
  EXPECT_FALSE(forecast_.Knows(Group()));
}

TEST_F(StepForecastTest, AGroupHasFinishedWhatItsSlowestMemberHas) {
  EXPECT_TRUE(forecast_.HasPassed(Group(), 8, Epoch(7)));
  EXPECT_FALSE(forecast_.HasPassed(Group(), 9, Epoch(7)));
  Report(Second(1.5), kSlow, 9, 72);
  EXPECT_TRUE(forecast_.HasPassed(Group(), 9, Epoch(7)));
  forecast_.OnDeparture(kSlow);
  EXPECT_FALSE(forecast_.HasPassed(Group(), 1, Epoch(7)));
}

TEST_F(StepForecastTest, AGroupIsPastTheStepsBeforeItsFirst) {
  Report(Second(2), kFast, 0, 80, 2);
  Report(Second(2), kSlow, 0, 64, 2);
  proto::Group late = Group(2);
  late.set_first_step(209);
  EXPECT_TRUE(forecast_.HasPassed(late, 208, Epoch(7)));
  EXPECT_FALSE(forecast_.HasPassed(late, 209, Epoch(7)));
}

// A step that cannot end yet, as one shard takes no pushes, may be in the others.
TEST_F(StepForecastTest, IsNotBeforeTheStepWhosePushIsUnderWay) {
  const auto step_at = [](uint64_t step, uint64_t unconfirmed) {
    StepForecast forecast;
    forecast.OnProgress(kStart, kFast,
                        {.group = GroupId(1), .step = step, .unconfirmed_step = unconfirmed});
    proto::Group group = Group();
    group.set_first_step(22);
    return forecast.StepAt(group, Second(1));
  };
  EXPECT_EQ(step_at(0, 22), 22u) << "the first one of a group that has formed late";
  EXPECT_EQ(step_at(22, 23), 23u);
  EXPECT_EQ(step_at(23, 0), 23u) << "none is under way";
  EXPECT_EQ(step_at(23, 500), 23u) << "a push as a member of another group";
}

// A head that is gone may have been the only one that had a push: it is sent again, later.
TEST_F(StepForecastTest, APushThatAHeadMayLackHasNotPassed) {
  const auto report = [this](uint64_t unconfirmed, uint64_t epoch) {
    forecast_.OnProgress(Second(2), kSlow,
                         {.group = GroupId(1),
                          .step = 9,
                          .samples = 72,
                          .unconfirmed_step = unconfirmed,
                          .view_epoch = Epoch(epoch)});
  };
  report(9, 7);
  EXPECT_FALSE(forecast_.HasPassed(Group(), 9, Epoch(7)));
  EXPECT_TRUE(forecast_.HasPassed(Group(), 8, Epoch(7))) << "later pushes do not matter";
  report(0, 6);
  EXPECT_FALSE(forecast_.HasPassed(Group(), 9, Epoch(7))) << "it does not know the heads yet";
  report(0, 7);
  EXPECT_TRUE(forecast_.HasPassed(Group(), 9, Epoch(7)));
}

// Groups count their steps themselves, so a step says nothing in another group.
TEST_F(StepForecastTest, AWorkerThatHasMovedBeginsAgain) {
  Report(Second(2), kFast, 500, 88, 2);
  EXPECT_FALSE(forecast_.HasPassed(Group(2), 8, Epoch(7))) << "the other member is in group 1";
  Report(Second(2), kSlow, 500, 72, 2);
  EXPECT_FALSE(forecast_.HasPassed(Group(1), 8, Epoch(7)));
  EXPECT_TRUE(forecast_.HasPassed(Group(2), 500, Epoch(7)));
  EXPECT_FALSE(forecast_.Knows(Group(2)));
  Report(Second(3), kFast, 501, 96, 2);
  Report(Second(3), kSlow, 501, 80, 2);
  EXPECT_TRUE(forecast_.Knows(Group(2)));
  EXPECT_EQ(forecast_.StepAt(Group(2), Second(4)), 502u);
  EXPECT_EQ(forecast_.samples(), 176u);
}

TEST_F(StepForecastTest, AWorkerThatRestsHasNoPace) {
  Report(Second(6), kFast, 10, 80);
  EXPECT_EQ(forecast_.StepAt(Group(), Second(7)), 70u);
  Report(Second(6.5), kFast, 10, 80);
  Report(Second(6.5), kSlow, 8, 64);
  EXPECT_EQ(forecast_.StepAt(Group(), Second(7)), 10u);
}

TEST_F(StepForecastTest, AWorkerWithLongStepsDoesNotRest) {
  for (int second = 0; second <= 28; ++second) {
    Report(Second(second), NodeId(6), second / 10, 8, 2);
  }
  proto::Group group;
  group.set_id(2);
  group.add_members(6);
  EXPECT_EQ(forecast_.StepAt(group, Second(28)), 3u);
  EXPECT_EQ(forecast_.StepAt(group, Second(31)), 4u) << "the third step is late";
}

TEST_F(StepForecastTest, ReportsThatArriveTogetherSayNothingOfThePace) {
  Report(Second(1.01), kFast, 15, 120);
  EXPECT_EQ(forecast_.StepAt(Group(), Second(2.01)), 25u);
}

TEST_F(StepForecastTest, CountsTheExamplesOfAllWorkersOnce) {
  EXPECT_EQ(forecast_.samples(), 144u);
  Report(Second(2), kFast, 10, 80);
  EXPECT_EQ(forecast_.samples(), 144u) << "a repeated report";
  forecast_.OnDeparture(kFast);
  EXPECT_EQ(forecast_.samples(), 144u);
  Report(Second(3), NodeId(6), 1, 6);
  EXPECT_EQ(forecast_.samples(), 150u);
}

}  // namespace
}  // namespace covey::scheduler

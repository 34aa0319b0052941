// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/step_forecast.h"

#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);
constexpr NodeId kFast(4);
constexpr NodeId kSlow(5);

proto::Group Group(uint64_t first_step) {
  proto::Group group;
  group.set_id(1);
  group.set_first_step(first_step);
  group.add_members(kFast.value());
  group.add_members(kSlow.value());
  return group;
}

// Two heartbeats of each worker, one second apart: 10 and 8 steps per second.
class StepForecastTest : public ::testing::Test {
 protected:
  StepForecastTest() {
    forecast_.OnProgress(kStart, kFast, 0, 0);
    forecast_.OnProgress(kStart, kSlow, 0, 0);
    forecast_.OnProgress(Second(1), kFast, 10, 80);
    forecast_.OnProgress(Second(1), kSlow, 8, 64);
  }
  static absl::Time Second(double seconds) { return kStart + absl::Seconds(seconds); }

  StepForecast forecast_;
};

TEST_F(StepForecastTest, FollowsTheFastestMember) {
  EXPECT_EQ(forecast_.StepAt(Group(0), Second(1)), 10u);
  EXPECT_EQ(forecast_.StepAt(Group(0), Second(2)), 20u);
  EXPECT_EQ(forecast_.StepAt(Group(0), Second(2.01)), 21u) << "rather too late than too early";
  EXPECT_EQ(forecast_.StepAt(Group(0), Second(0)), 10u) << "never behind what was reported";
}

TEST_F(StepForecastTest, KnowsAGroupWhoseMembersHaveAllReportedTwice) {
  EXPECT_TRUE(forecast_.Knows(Group(0)));
  proto::Group grown = Group(0);
  grown.add_members(6);
  EXPECT_FALSE(forecast_.Knows(grown));
  forecast_.OnProgress(Second(1), NodeId(6), 1, 8);
  EXPECT_FALSE(forecast_.Knows(grown));
  forecast_.OnProgress(Second(2), NodeId(6), 11, 88);
  EXPECT_TRUE(forecast_.Knows(grown));
  forecast_.OnDeparture(kSlow);
  EXPECT_FALSE(forecast_.Knows(Group(0)));
}

TEST_F(StepForecastTest, AGroupHasFinishedWhatItsSlowestMemberHas) {
  EXPECT_TRUE(forecast_.HasFinished(Group(0), 8));
  EXPECT_FALSE(forecast_.HasFinished(Group(0), 9));
  forecast_.OnProgress(Second(1.5), kSlow, 9, 72);
  EXPECT_TRUE(forecast_.HasFinished(Group(0), 9));
  forecast_.OnDeparture(kSlow);
  EXPECT_FALSE(forecast_.HasFinished(Group(0), 1));
}

TEST_F(StepForecastTest, AWorkerThatRestsHasNoPace) {
  forecast_.OnProgress(Second(6), kFast, 10, 80);
  EXPECT_EQ(forecast_.StepAt(Group(0), Second(7)), 70u);
  forecast_.OnProgress(Second(6.5), kFast, 10, 80);
  forecast_.OnProgress(Second(6.5), kSlow, 8, 64);
  EXPECT_EQ(forecast_.StepAt(Group(0), Second(7)), 10u);
}

TEST_F(StepForecastTest, ReportsThatArriveTogetherSayNothingOfThePace) {
  forecast_.OnProgress(Second(1.01), kFast, 15, 120);
  EXPECT_EQ(forecast_.StepAt(Group(0), Second(2.01)), 25u);
}

TEST_F(StepForecastTest, CountsTheExamplesOfAllWorkersOnce) {
  EXPECT_EQ(forecast_.samples(), 144u);
  forecast_.OnProgress(Second(2), kFast, 10, 80);
  EXPECT_EQ(forecast_.samples(), 144u) << "a repeated report";
  forecast_.OnDeparture(kFast);
  EXPECT_EQ(forecast_.samples(), 144u);
  forecast_.OnProgress(Second(3), NodeId(6), 1, 6);
  EXPECT_EQ(forecast_.samples(), 150u);
}

}  // namespace
}  // namespace covey::scheduler

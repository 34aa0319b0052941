// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/group_efficiency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>

namespace covey {
namespace {

using ::testing::ElementsAre;

class GroupSpeedTest : public ::testing::Test {
 protected:
  void Add(double seconds, double samples) {
    WorkerPace pace({});
    for (int i = 0; i < 10; ++i) {
      pace.Add({.compute_seconds = seconds, .samples_per_step = samples});
    }
    paces_.push_back(pace);
    members_.push_back(&paces_.back());
  }

  std::deque<WorkerPace> paces_;
  std::vector<const WorkerPace*> members_;
};

TEST_F(GroupSpeedTest, OfTwoTheFasterIsTheMedian) {
  Add(3, 10);
  Add(1, 10);
  EXPECT_DOUBLE_EQ(MedianPace(members_), 0.1);
  Add(2, 10);
  EXPECT_DOUBLE_EQ(MedianPace(members_), 0.2);
  EXPECT_DOUBLE_EQ(MedianStepSeconds(members_), 2);
}

TEST_F(GroupSpeedTest, EqualFinishesAreFullSpeed) {
  Add(1, 10);
  Add(1, 5);
  EXPECT_DOUBLE_EQ(EfficiencyOf(members_).part, 1);
}

TEST_F(GroupSpeedTest, EverybodyWaitsForTheSlowest) {
  for (int i = 0; i < 3; ++i) Add(1, 10);
  Add(5, 10);
  const GroupEfficiency efficiency = EfficiencyOf(members_);
  // 40 samples in 5 s; speeds are 10, 10, 10 and 2 per second.
  EXPECT_DOUBLE_EQ(efficiency.part, 0.25);
  EXPECT_EQ(efficiency.slowest, 3u);
  EXPECT_DOUBLE_EQ(efficiency.slowest_step_seconds, 5);
  EXPECT_DOUBLE_EQ(efficiency.gain_without_slowest, 30.0 / 8);
}

TEST_F(GroupSpeedTest, SharesFollowSpeedAndHaveAFloor) {
  Add(1, 10);
  Add(1, 10);
  Add(2, 10);
  EXPECT_THAT(SharesBySpeed(members_, 0.1), ElementsAre(1200, 1200, 600));
  Add(1000, 10);
  EXPECT_EQ(SharesBySpeed(members_, 0.1)[3], 100u);
}

}  // namespace
}  // namespace covey

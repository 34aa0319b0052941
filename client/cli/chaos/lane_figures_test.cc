// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/lane_figures.h"

#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

std::unique_ptr<LedgerLoad::Lane> LaneWith(const std::vector<double>& seconds) {
  auto lane = std::make_unique<LedgerLoad::Lane>();
  for (const double time : seconds) lane->times.push_back(At(time));
  return lane;
}

TEST(LaneFiguresTest, ADipIsTheFallOfTheSummedRate) {
  const auto steady = LaneWith({0.2, 0.6, 1.2, 1.6});
  const auto slower = LaneWith({0.2, 0.6, 1.2});
  EXPECT_DOUBLE_EQ(DipPercent({steady.get(), slower.get()}, At(0), At(1), At(1), At(2)), 25);
  EXPECT_DOUBLE_EQ(DipPercent({slower.get()}, At(1), At(2), At(0), At(1)), 0) << "it is faster";
  EXPECT_TRUE(std::isnan(DipPercent({slower.get()}, At(5), At(6), At(0), At(1))));
}

TEST(LaneFiguresTest, RatesAreThoseOfAllLanesInPiecesOfAQuarterSecond) {
  std::vector<std::unique_ptr<LedgerLoad::Lane>> lanes;
  lanes.push_back(LaneWith({0.1, 0.3}));
  lanes.push_back(LaneWith({0.2, 0.7}));
  EXPECT_THAT(RatesIn(lanes, At(0), At(0.6)), ElementsAre(8, 4)) << "the last piece is too short";
}

TEST(LaneFiguresTest, TheLongestGapIsBetweenTwoAcknowledgments) {
  const auto lane = LaneWith({1, 2, 2.5, 5, 5.5});
  EXPECT_DOUBLE_EQ(LongestGapSeconds(*lane, At(1.75), At(6)), 2.5);
  EXPECT_DOUBLE_EQ(LongestGapSeconds(*lane, At(0), At(2.25)), 1) << "the fault begins a gap";
  EXPECT_TRUE(std::isinf(LongestGapSeconds(*lane, At(1.75), At(9)))) << "it has not ended";
}

TEST(LaneFiguresTest, TheLongestGapOfSeveralLanesIsThatOfTheSlowest) {
  const auto quick = LaneWith({1, 2, 3});
  const auto slow = LaneWith({1, 2.75, 3});
  std::vector<const LedgerLoad::Lane*> lanes;
  EXPECT_TRUE(std::isnan(LongestGapSeconds(lanes, At(0.5), At(3.5))));
  lanes = {quick.get(), slow.get()};
  EXPECT_DOUBLE_EQ(LongestGapSeconds(lanes, At(0.5), At(3.5)), 1.75);
}

TEST(LaneFiguresTest, CountsAcknowledgmentsInARange) {
  const auto lane = LaneWith({1, 2, 3});
  EXPECT_EQ(AcknowledgedIn(*lane, At(1), At(3)), 2u);
  EXPECT_EQ(AcknowledgedIn(*lane, At(3), At(1)), 0u);
}

}  // namespace
}  // namespace covey::cli

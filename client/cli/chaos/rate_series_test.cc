// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/rate_series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey::cli {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

absl::Time At(double seconds) { return absl::UnixEpoch() + absl::Seconds(seconds); }

TEST(RateSeriesTest, OneMomentOfBadLuckDoesNotChangeTheMedian) {
  RateSeries series;
  double count = 0;
  for (int i = 0; i <= 10; ++i) {
    series.Add(At(i), count);
    count += i == 4 ? 0 : 50;  // no progress in the fifth second
  }
  EXPECT_THAT(series.Pieces(absl::Seconds(2)), ElementsAre(50, 50, 25, 50, 50));
  EXPECT_EQ(series.Median(absl::Seconds(2)), 50);
}

TEST(RateSeriesTest, PiecesEndWhereACountWasTold) {
  RateSeries series;
  series.Add(At(0), 0);
  series.Add(At(1.5), 30);
  series.Add(At(2.5), 100);
  series.Add(At(4), 130);
  EXPECT_THAT(series.Pieces(absl::Seconds(2)), ElementsAre(DoubleNear(40, 1e-9)));
}

TEST(RateSeriesTest, WithoutTwoCountsThereIsNoRate) {
  RateSeries series;
  EXPECT_EQ(series.Median(absl::Seconds(1)), 0);
  series.Add(At(1), 5);
  series.Add(At(1), 6);
  EXPECT_EQ(series.Median(absl::ZeroDuration()), 0);
}

TEST(RateSeriesTest, TheMedianOfAnEvenNumberIsInTheMiddle) {
  EXPECT_EQ(MedianOf({4, 1, 3, 2}), 2.5);
  EXPECT_EQ(MedianOf({5, 1, 3}), 3);
}

}  // namespace
}  // namespace covey::cli

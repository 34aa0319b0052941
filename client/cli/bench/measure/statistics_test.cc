// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measure/statistics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey::cli {
namespace {

TEST(QuantileTest, TakesMeasuredValues) {
  EXPECT_EQ(Quantile({3, 1, 2}, 0.5), 2);
  EXPECT_EQ(Quantile({3, 1, 2}, 0), 1);
  EXPECT_EQ(Quantile({3, 1, 2}, 1), 3);
  EXPECT_EQ(Quantile({7}, 0.99), 7);
}

TEST(RatioTest, PairsRepetitionsOfOneIndex) {
  EXPECT_THAT(RatioPerRepetition({2, 9, 4}, {4, 3, 4}), ::testing::ElementsAre(0.5, 3, 1));
  EXPECT_THAT(RatioPerRepetition({2, 9}, {4}), ::testing::ElementsAre(0.5));
}

TEST(MedianIntervalTest, IsTheSameForTheSameValues) {
  const std::vector<double> values = {1.0, 1.1, 0.9, 1.2, 0.8, 1.05, 0.95};
  const Interval first = MedianInterval(values), second = MedianInterval(values);
  EXPECT_EQ(first.low, second.low);
  EXPECT_EQ(first.high, second.high);
}

TEST(MedianIntervalTest, HoldsTheMedianAndStaysInTheRange) {
  const Interval interval = MedianInterval({1.0, 1.1, 0.9, 1.2, 0.8, 1.05, 0.95});
  EXPECT_GE(interval.low, 0.8);
  EXPECT_LT(interval.low, 1.0);
  EXPECT_GT(interval.high, 1.0);
  EXPECT_LE(interval.high, 1.2);
}

TEST(MedianIntervalTest, OneOutlierOfSevenDoesNotReachTheInterval) {
  // Four of seven draws would have to be the outlier: 0.9 % of the samples.
  EXPECT_EQ(MedianInterval({1, 1, 1, 1, 1, 1, 50}).high, 1);
}

TEST(MedianIntervalTest, EqualValuesGiveAPoint) {
  const Interval interval = MedianInterval({2, 2, 2});
  EXPECT_EQ(interval.low, 2);
  EXPECT_EQ(interval.high, 2);
}

}  // namespace
}  // namespace covey::cli

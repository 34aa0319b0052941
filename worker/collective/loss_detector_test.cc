// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/loss_detector.h"

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

constexpr absl::Time kBegin = absl::UnixEpoch();

TEST(LossDetectorTest, AsksAfterASilenceAndNotBefore) {
  LossDetector detector;
  detector.Begin(3);
  detector.CollectiveBegan(kBegin);
  EXPECT_EQ(detector.NextQuery(), kBegin + LossDetector::kSilenceMin);
  detector.SliceCame(kBegin + absl::Milliseconds(400), 1);
  EXPECT_EQ(detector.NextQuery(), kBegin + absl::Milliseconds(900));
  detector.Asked(kBegin + absl::Milliseconds(900));
  EXPECT_EQ(detector.NextQuery(), kBegin + absl::Milliseconds(1400));
}

TEST(LossDetectorTest, OnlySlicesThatWereSentAndHaveNotComeAreLost) {
  LossDetector detector;
  detector.Begin(3);
  detector.SliceCame(kBegin, 1);
  detector.SliceCame(kBegin, 1);
  EXPECT_FALSE(detector.HasLost(1, 2));  // It is merely slow.
  EXPECT_TRUE(detector.HasLost(1, 3));
  EXPECT_TRUE(detector.HasLost(2, 1));  // Each member is counted by itself.
  EXPECT_FALSE(detector.HasLost(2, 0));
}

TEST(LossDetectorTest, EachRoundCountsFromZero) {
  LossDetector detector;
  detector.Begin(2);
  detector.SliceCame(kBegin, 1);
  detector.Begin(3);
  EXPECT_TRUE(detector.HasLost(1, 1));
}

TEST(LossDetectorTest, SlowCollectivesMakeItPatientWithinLimits) {
  LossDetector detector;
  detector.Begin(2);
  detector.CollectiveBegan(kBegin);
  for (int i = 0; i < 100; ++i) detector.CollectiveTook(absl::Seconds(1));
  EXPECT_GT(detector.NextQuery(), kBegin + absl::Seconds(3.9));
  EXPECT_LE(detector.NextQuery(), kBegin + absl::Seconds(4));
  detector.Begin(2);  // What is usual stays.
  EXPECT_GT(detector.NextQuery(), kBegin + absl::Seconds(3.9));
  for (int i = 0; i < 100; ++i) detector.CollectiveTook(absl::Seconds(60));
  EXPECT_EQ(detector.NextQuery(), kBegin + LossDetector::kSilenceMax);
  for (int i = 0; i < 100; ++i) detector.CollectiveTook(absl::ZeroDuration());
  EXPECT_EQ(detector.NextQuery(), kBegin + LossDetector::kSilenceMin);
}

}  // namespace
}  // namespace covey::worker

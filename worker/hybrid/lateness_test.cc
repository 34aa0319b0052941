// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/lateness.h"

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

constexpr LatenessRule kTwoAndASecond{.minimum_members = 2, .grace = absl::Seconds(1)};

TEST(LatenessTest, TheGraceRunsFromTheLastWhoGave) {
  Lateness lateness;
  const absl::Time start = absl::UnixEpoch();
  lateness.AddGiven(start, Step(3), {1});
  EXPECT_EQ(lateness.DueAt(Step(3), kTwoAndASecond), absl::InfiniteFuture());
  lateness.AddGiven(start + absl::Seconds(5), Step(3), {1, 2});
  EXPECT_EQ(lateness.DueAt(Step(3), kTwoAndASecond), start + absl::Seconds(6));
  // More of the same ones says nothing new; another one does.
  lateness.AddGiven(start + absl::Seconds(7), Step(3), {2});
  EXPECT_EQ(lateness.DueAt(Step(3), kTwoAndASecond), start + absl::Seconds(6));
  lateness.AddGiven(start + absl::Seconds(7), Step(3), {0});
  EXPECT_EQ(lateness.DueAt(Step(3), kTwoAndASecond), start + absl::Seconds(8));
}

TEST(LatenessTest, StepsStandForThemselves) {
  Lateness lateness;
  lateness.AddGiven(absl::UnixEpoch(), Step(3), {1, 2});
  EXPECT_EQ(lateness.DueAt(Step(4), kTwoAndASecond), absl::InfiniteFuture());
  lateness.AddGiven(absl::UnixEpoch(), Step(4), {1});
  EXPECT_EQ(lateness.DueAt(Step(4), kTwoAndASecond), absl::InfiniteFuture());
}

TEST(LatenessTest, WhoSteppedAsideHasGivenNothing) {
  Lateness lateness;
  lateness.AddGiven(absl::UnixEpoch(), Step(3), {1, 2});
  lateness.AddSteppedAside(Step(3), {2});
  EXPECT_EQ(lateness.DueAt(Step(3), kTwoAndASecond), absl::InfiniteFuture());
  lateness.AddGiven(absl::UnixEpoch() + absl::Seconds(4), Step(3), {0, 2});
  EXPECT_EQ(lateness.DueAt(Step(3), kTwoAndASecond), absl::UnixEpoch() + absl::Seconds(5));
  // In another step it may give again.
  lateness.AddGiven(absl::UnixEpoch(), Step(4), {1, 2});
  EXPECT_EQ(lateness.DueAt(Step(4), kTwoAndASecond), absl::UnixEpoch() + absl::Seconds(1));
}

TEST(LatenessTest, OffByDefault) {
  Lateness lateness;
  lateness.AddGiven(absl::UnixEpoch(), Step(1), {1, 2, 3});
  EXPECT_EQ(lateness.DueAt(Step(1), LatenessRule()), absl::InfiniteFuture());
}

}  // namespace
}  // namespace covey::worker

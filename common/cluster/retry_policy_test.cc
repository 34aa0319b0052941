// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/retry_policy.h"

#include <limits>

#include "common/cluster/backoff.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(RetryPolicyTest, DoublesUpToTheLongest) {
  const RetryPolicy policy{.longest = absl::Milliseconds(100)};
  const absl::Duration first = absl::Milliseconds(20);
  EXPECT_EQ(policy.DelayAfter(0, first), absl::Milliseconds(20));
  EXPECT_EQ(policy.DelayAfter(1, first), absl::Milliseconds(40));
  EXPECT_EQ(policy.DelayAfter(2, first), absl::Milliseconds(80));
  EXPECT_EQ(policy.DelayAfter(3, first), absl::Milliseconds(100));
  EXPECT_EQ(policy.DelayAfter(std::numeric_limits<int>::max(), first), absl::Milliseconds(100));
}

TEST(RetryPolicyTest, DoublesAFewTimesOnly) {
  const RetryPolicy policy{.doublings_max = 3};
  EXPECT_EQ(policy.DelayAfter(2, absl::Seconds(1)), absl::Seconds(4));
  EXPECT_EQ(policy.DelayAfter(3, absl::Seconds(1)), absl::Seconds(8));
  EXPECT_EQ(policy.DelayAfter(99, absl::Seconds(1)), absl::Seconds(8));
}

TEST(RetryPolicyTest, JitterStaysInItsRange) {
  Random random(7);
  const absl::Duration delay = absl::Milliseconds(100);
  for (int i = 0; i < 1000; ++i) {
    const absl::Duration longer = UpToATenthLonger(delay, random);
    EXPECT_TRUE(longer >= delay && longer <= absl::Milliseconds(110)) << longer;
    const absl::Duration shorter = DownToHalf(delay, random);
    EXPECT_TRUE(shorter >= delay / 2 && shorter <= delay) << shorter;
  }
}

TEST(BackoffTest, GrowsFromTheFirstToTheLongestAndStartsAgain) {
  Backoff backoff({.first = absl::Milliseconds(20), .longest = absl::Seconds(1)}, Random(3));
  const auto expect_between = [&](absl::Duration whole) {
    const absl::Duration delay = backoff.Next();
    EXPECT_TRUE(delay >= whole / 2 && delay <= whole) << delay << " of " << whole;
  };
  for (const int whole_ms : {20, 40, 80, 160, 320, 640, 1000, 1000}) {
    expect_between(absl::Milliseconds(whole_ms));
  }
  backoff.Reset();
  expect_between(absl::Milliseconds(20));
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/restart_limit.h"

#include <gtest/gtest.h>

namespace covey::cli {
namespace {

constexpr absl::Duration kShort = absl::Seconds(1);

TEST(RestartLimitTest, WhoeverEndsAtOnceEachTimeIsGivenUp) {
  RestartLimit limit;
  for (int i = 1; i < RestartLimit::kQuickEndsMax; ++i) {
    EXPECT_TRUE(limit.Allows("server-0", kShort)) << i;
  }
  EXPECT_FALSE(limit.Allows("server-0", kShort));
  EXPECT_FALSE(limit.Allows("server-0", RestartLimit::kQuick));
  EXPECT_TRUE(limit.Allows("server-1", kShort)) << "each has its own count";
}

TEST(RestartLimitTest, ALongLifeMakesUpForShortOnes) {
  RestartLimit limit;
  for (int i = 0; i < 3 * RestartLimit::kQuickEndsMax; ++i) {
    EXPECT_TRUE(limit.Allows("worker-1", i % 3 == 2 ? RestartLimit::kQuick : kShort)) << i;
  }
}

}  // namespace
}  // namespace covey::cli

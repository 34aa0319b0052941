// SPDX-License-Identifier: Apache-2.0
#include "common/base/small_limits.h"

#include <gtest/gtest.h>

#include "common/base/small_limits_switch.h"

namespace covey {
namespace {

TEST(SmallLimitsTest, AreInForceOnceTheyAreSet) {
  EXPECT_EQ(LimitInForce(4096, 8), 4096u);
  SetSmallLimits(true);
  EXPECT_EQ(LimitInForce(4096, 8), 8u);
  SetSmallLimits(false);
  EXPECT_EQ(LimitInForce(4096, 8), 4096u);
}

}  // namespace
}  // namespace covey

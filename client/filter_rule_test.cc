// SPDX-License-Identifier: Apache-2.0
#include "client/filter_rule.h"

#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace covey::client {
namespace {

using Floats = std::vector<float>;

const float kNan = std::numeric_limits<float>::quiet_NaN();

TEST(FilterRuleTest, OnlyRowsOfZerosWaitForTheNorm) {
  const FilterRule rule{.kind = FilterRule::Kind::kKkt, .threshold = 1};
  EXPECT_TRUE(rule.CanWait(Floats{0}, Floats{-0.75f}, 1));
  EXPECT_TRUE(rule.CanWait(Floats{0}, Floats{0.75f}, 1000));
  EXPECT_FALSE(rule.CanWait(Floats{0}, Floats{-1}, 1));
  EXPECT_FALSE(rule.CanWait(Floats{1e-30f}, Floats{0.75f}, 1));
  // Each column has its own condition; their norm is 1.06.
  EXPECT_TRUE(rule.CanWait(Floats{0, -0.0f}, Floats{0.75f, 0.75f}, 1));
  EXPECT_FALSE(rule.CanWait(Floats{0, 0}, Floats{0.75f, -1.5f}, 1));
  EXPECT_FALSE(rule.CanWait(Floats{0, 1}, Floats{0.75f, 0.75f}, 1));
}

TEST(FilterRuleTest, RowsWaitForASignificantGradient) {
  const FilterRule rule{.kind = FilterRule::Kind::kSignificance, .threshold = 0.5};
  // The row's norm is 5: 2.5 at the first push, 1.25 at the fourth, 0.25 at the hundredth.
  const Floats row = {3, -4};
  EXPECT_TRUE(rule.CanWait(row, Floats{0, 2.4f}, 1));
  EXPECT_FALSE(rule.CanWait(row, Floats{0, 2.5f}, 1));
  EXPECT_TRUE(rule.CanWait(row, Floats{0.7f, -1}, 4));   // 1.22
  EXPECT_FALSE(rule.CanWait(row, Floats{0.8f, -1}, 4));  // 1.28
  EXPECT_TRUE(rule.CanWait(row, Floats{0.24f, 0}, 100));
  EXPECT_FALSE(rule.CanWait(row, Floats{0.26f, 0}, 100));
  EXPECT_FALSE(rule.CanWait(Floats{0, 0}, Floats{0, 1e-9f}, 1));
}

TEST(FilterRuleTest, NothingWaitsWithoutAThresholdOrWithNan) {
  for (const FilterRule::Kind kind : {FilterRule::Kind::kKkt, FilterRule::Kind::kSignificance}) {
    EXPECT_FALSE((FilterRule{.kind = kind}.CanWait(Floats{0}, Floats{0}, 1)));
    EXPECT_FALSE((FilterRule{.kind = kind}.CanWait(Floats{2}, Floats{0}, 1)));
    const FilterRule rule{.kind = kind, .threshold = 1};
    EXPECT_FALSE(rule.CanWait(Floats{0}, Floats{kNan}, 1));
    EXPECT_FALSE(rule.CanWait(Floats{kNan}, Floats{0.5f}, 1));
  }
}

}  // namespace
}  // namespace covey::client

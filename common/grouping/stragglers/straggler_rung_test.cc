// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/straggler_rung.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace covey {
namespace {

using ::testing::HasSubstr;

TEST(StragglerRungTest, NamesOfRungs) {
  EXPECT_EQ(*ParseStragglerRung("off"), StragglerRung::kOff);
  EXPECT_EQ(*ParseStragglerRung("evict"), StragglerRung::kEvict);
  EXPECT_EQ(StragglerRungName(StragglerRung::kRegroup), "regroup");
  EXPECT_THAT(std::string(ParseStragglerRung("all").status().message()),
              HasSubstr("'all' is none of off, observe, shift, partial, regroup, evict"));
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/base/planted_bug.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/planted_bug_switch.h"

namespace covey {
namespace {

TEST(PlantedBugTest, IsInForceOnceItIsPlanted) {
  EXPECT_FALSE(Planted(PlantedBug::kAcceptOldEpoch));
  PlantBug(PlantedBug::kAcceptOldEpoch);
  EXPECT_TRUE(Planted(PlantedBug::kAcceptOldEpoch));
  EXPECT_FALSE(Planted(PlantedBug::kSequenceWraps));
  PlantBug(PlantedBug::kNone);
  EXPECT_FALSE(Planted(PlantedBug::kAcceptOldEpoch));
}

TEST(PlantedBugTest, HasANameOfItsOwn) {
  std::set<absl::string_view> names;
  for (const PlantedBug bug : AllPlantedBugs()) {
    EXPECT_TRUE(names.insert(PlantedBugName(bug)).second) << PlantedBugName(bug);
    EXPECT_EQ(PlantedBugOfName(PlantedBugName(bug)), bug);
  }
  EXPECT_EQ(names.size(), 71u);
  EXPECT_EQ(PlantedBugOfName("no-such-bug"), PlantedBug::kNone);
}

}  // namespace
}  // namespace covey

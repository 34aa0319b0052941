// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/missing_ranks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/cli/run/plan/run_options.h"

namespace covey::cli {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(MissingRanksTest, FillsTheLowestGaps) {
  EXPECT_THAT(MissingRanks({}, {}, 2), ElementsAre(0, 1));
  EXPECT_THAT(MissingRanks({{1, false}}, {}, 3), ElementsAre(0, 2));
  EXPECT_THAT(MissingRanks({{0, false}, {1, false}}, {}, 2), IsEmpty());
  EXPECT_THAT(MissingRanks({{0, false}, {1, false}}, {}, 1), IsEmpty());
}

TEST(MissingRanksTest, AProcessThatDrainsKeepsItsRankAndDoesNotCount) {
  EXPECT_THAT(MissingRanks({{0, true}, {1, false}}, {}, 2), ElementsAre(2));
}

TEST(MissingRanksTest, AProcessThatIsStartedAgainCountsOnce) {
  EXPECT_THAT(MissingRanks({{0, false}}, {1, 1}, 3), ElementsAre(2));
  EXPECT_THAT(MissingRanks({{0, true}}, {0}, 1), ElementsAre(1));
}

TEST(MissingRanksTest, NeverAsksForMoreThanTheLimit) {
  EXPECT_EQ(MissingRanks({}, {}, 1'000'000).size(), kProcessesMax);
}

}  // namespace
}  // namespace covey::cli

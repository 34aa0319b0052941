// SPDX-License-Identifier: Apache-2.0
#include "common/collective/sections.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "common/collective/algorithm.h"
#include "common/collective/collective_kind.h"
#include "common/collective/part_range.h"
#include "common/collective/plan.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAre;

class SectionsCoverTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, SectionsCoverTest,
                         testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 23, 64));

TEST_P(SectionsCoverTest, SectionsCoverTheTensorOnceInOrder) {
  const uint32_t size = GetParam();
  for (const Algorithm algorithm : kAlgorithms) {
    const Plan plan({.algorithm = algorithm, .size = size, .paths = {}});
    for (const size_t count : {0, 1, 5, 1000}) {
      for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllReduce,
                                        CollectiveKind::kAllGather, CollectiveKind::kBroadcast}) {
        size_t next = 0;
        for (const Section& section :
             SectionsOf(plan, kind, EvenParts(count, size), count, size - 1)) {
          EXPECT_EQ(section.range.first, next);
          EXPECT_GT(section.range.count, 0u);
          if (kind == CollectiveKind::kBroadcast) {
            EXPECT_EQ(section.owner, size - 1);
          }
          next += section.range.count;
        }
        EXPECT_EQ(next, count);
      }
    }
  }
}

TEST(SectionsTest, ATreeMovesAnAllReduceAsAWhole) {
  const Plan tree({.algorithm = Algorithm::kTree, .size = 4, .paths = {}});
  const std::vector<PartRange> parts = EvenParts(10, 4);
  EXPECT_THAT(SectionsOf(tree, CollectiveKind::kAllReduce, parts, 10, 0),
              ElementsAre(Section{.owner = 0, .stripe = 0, .range = {.first = 0, .count = 10}}));
  EXPECT_EQ(SectionsOf(tree, CollectiveKind::kReduceScatter, parts, 10, 0).size(), 4u);
}

TEST(SectionsTest, AllMembersOwnAnAllReduceInOneShot) {
  const Plan plan({.algorithm = Algorithm::kOneShot, .size = 4, .paths = {}});
  const std::vector<PartRange> parts = EvenParts(10, 4);
  const auto whole = [](size_t count) {
    return Section{.owner = std::nullopt, .stripe = 0, .range = {.first = 0, .count = count}};
  };
  EXPECT_THAT(SectionsOf(plan, CollectiveKind::kAllReduce, parts, 10, 0), ElementsAre(whole(10)));
  EXPECT_THAT(SectionsOf(plan, CollectiveKind::kBarrier, {}, 0, 0), ElementsAre(whole(0)));
  for (const CollectiveKind kind : {CollectiveKind::kReduceScatter, CollectiveKind::kAllGather}) {
    const std::vector<Section> sections = SectionsOf(plan, kind, parts, 10, 0);
    ASSERT_EQ(sections.size(), 4u);
    for (uint32_t member = 0; member < 4; ++member) EXPECT_EQ(sections[member].owner, member);
  }
}

TEST(SectionsTest, PartsMayStandInAnyOrderAndLeaveGaps) {
  const Plan ring({.algorithm = Algorithm::kRing, .size = 3, .paths = {}});
  const std::vector<PartRange> parts = {{6, 2}, {0, 0}, {1, 3}};
  EXPECT_THAT(SectionsOf(ring, CollectiveKind::kReduceScatter, parts, 9, 0),
              ElementsAre(Section{.owner = 2, .stripe = 0, .range = {1, 3}},
                          Section{.owner = 0, .stripe = 0, .range = {6, 2}}));
}

TEST(SectionsTest, ABarrierIsOneToken) {
  const Plan ring({.algorithm = Algorithm::kMultiRing, .size = 5, .paths = {}});
  EXPECT_THAT(SectionsOf(ring, CollectiveKind::kBarrier, {}, 0, 0),
              ElementsAre(Section{.owner = 0, .stripe = 0, .range = {}}));
}

}  // namespace
}  // namespace covey

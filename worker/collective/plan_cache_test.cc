// SPDX-License-Identifier: Apache-2.0
#include "worker/collective/plan_cache.h"

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

constexpr CollectiveKind kKind = CollectiveKind::kReduceScatter;

TEST(PlanCacheTest, TheSamePlanIsGivenAgainUntilTheMembersChange) {
  PlanCache cache(Algorithm::kRing);
  cache.Reset(std::vector<TopologyPath>(4), LinkCosts());
  const auto first = cache.PlanFor(kKind, 100, Algorithm::kAutomatic);
  EXPECT_EQ(first->size(), 4u);
  EXPECT_EQ(cache.PlanFor(kKind, 1 << 20, Algorithm::kAutomatic), first);
  cache.Reset(std::vector<TopologyPath>(3), LinkCosts());
  EXPECT_EQ(cache.PlanFor(kKind, 100, Algorithm::kAutomatic)->size(), 3u);
}

TEST(PlanCacheTest, ACollectiveThatAsksForAnAlgorithmGetsIt) {
  PlanCache cache(Algorithm::kRing);
  cache.Reset(std::vector<TopologyPath>(4), LinkCosts());
  const auto ring = cache.PlanFor(kKind, 100, Algorithm::kRing);
  EXPECT_EQ(cache.PlanFor(kKind, 100, Algorithm::kAutomatic), ring);
  EXPECT_NE(cache.PlanFor(kKind, 100, Algorithm::kDirect), ring);
}

TEST(PlanCacheTest, OneMemberAloneUsesTheRing) {
  PlanCache cache(Algorithm::kAutomatic);
  cache.Reset(std::vector<TopologyPath>(1), LinkCosts());
  EXPECT_EQ(cache.PlanFor(kKind, 100, Algorithm::kAutomatic),
            cache.PlanFor(kKind, 100, Algorithm::kRing));
}

}  // namespace
}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "common/collective/plan.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/random.h"
#include "common/cluster/topology.h"
#include "common/collective/algorithm.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

// Members in `racks` racks with hosts of two, of uneven sizes, their ranks shuffled.
std::vector<TopologyPath> SomePaths(uint32_t size, uint32_t racks, uint64_t seed) {
  Random random(seed);
  std::vector<TopologyPath> paths;
  for (uint32_t i = 0; i < size; ++i) {
    const uint64_t rack = random.Below(racks);
    paths.push_back(ParseTopologyPath(
        absl::StrCat("z", rack / 2, "/r", rack, "/h", random.Below(3), "/d", random.Below(2))));
  }
  return paths;
}

std::vector<Plan> AllPlans(uint32_t size) {
  std::vector<Plan> plans;
  for (const Algorithm algorithm : kAlgorithms) {
    plans.emplace_back(PlanOptions{.algorithm = algorithm, .size = size, .paths = {}});
  }
  for (uint64_t seed = 0; seed < 4; ++seed) {
    plans.emplace_back(PlanOptions{.algorithm = Algorithm::kHierarchical,
                                   .size = size,
                                   .paths = SomePaths(size, 2 + seed, seed)});
  }
  return plans;
}

class PlanTest : public testing::TestWithParam<uint32_t> {};
INSTANTIATE_TEST_SUITE_P(Members, PlanTest, testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 23, 64));

// Parents and children name each other; all members' values reach the owner exactly once.
TEST_P(PlanTest, ReductionTreesSumEverybodyOnceAtTheOwner) {
  const uint32_t size = GetParam();
  for (const Plan& plan : AllPlans(size)) {
    for (uint32_t owner = 0; owner < size; ++owner) {
      for (uint32_t stripe = 0; stripe < plan.stripes(); ++stripe) {
        for (uint32_t rank = 0; rank < size; ++rank) {
          const ReduceNode node = plan.Reduce(owner, stripe, rank);
          EXPECT_EQ(node.parent.has_value(), rank != owner) << AlgorithmName(plan.algorithm());
          EXPECT_EQ(std::count(node.operands.begin(), node.operands.end(), rank), 1);
          for (const uint32_t operand : node.operands) {
            if (operand != rank) {
              ASSERT_EQ(plan.Reduce(owner, stripe, operand).parent, rank)
                  << AlgorithmName(plan.algorithm()) << " owner " << owner;
            }
          }
          if (node.parent) {
            const ReduceNode parent = plan.Reduce(owner, stripe, *node.parent);
            ASSERT_EQ(std::count(parent.operands.begin(), parent.operands.end(), rank), 1);
          }
          // No cycles: the owner is above every member.
          uint32_t above = rank;
          for (uint32_t steps = 0; above != owner && steps <= size; ++steps) {
            above = *plan.Reduce(owner, stripe, above).parent;
          }
          ASSERT_EQ(above, owner);
        }
      }
    }
  }
}

TEST_P(PlanTest, SpreadingTreesReachEverybodyFromTheOwner) {
  const uint32_t size = GetParam();
  for (const Plan& plan : AllPlans(size)) {
    for (uint32_t owner = 0; owner < size; ++owner) {
      for (uint32_t stripe = 0; stripe < plan.stripes(); ++stripe) {
        std::set<uint32_t> reached = {owner};
        EXPECT_FALSE(plan.Spread(owner, stripe, owner).parent);
        std::vector<uint32_t> speakers = {owner};
        while (!speakers.empty()) {
          const uint32_t speaker = speakers.back();
          speakers.pop_back();
          for (const uint32_t child : plan.Spread(owner, stripe, speaker).children) {
            ASSERT_EQ(plan.Spread(owner, stripe, child).parent, speaker);
            ASSERT_TRUE(reached.insert(child).second) << "told twice";
            speakers.push_back(child);
          }
        }
        ASSERT_EQ(reached.size(), size) << AlgorithmName(plan.algorithm());
      }
    }
  }
}

// Messages on the longest path to the owner.
uint32_t Depth(const Plan& plan, uint32_t owner, uint32_t rank) {
  uint32_t depth = 0;
  for (const uint32_t operand : plan.Reduce(owner, 0, rank).operands) {
    if (operand != rank) depth = std::max(depth, 1 + Depth(plan, owner, operand));
  }
  return depth;
}

TEST(PlanShapeTest, DepthIsWhatEachAlgorithmPromises) {
  const auto depth = [](Algorithm algorithm, uint32_t size) {
    const Plan plan({.algorithm = algorithm, .size = size, .paths = {}});
    uint32_t deepest = 0;
    for (uint32_t owner = 0; owner < size; ++owner) {
      deepest = std::max(deepest, Depth(plan, owner, owner));
    }
    return deepest;
  };
  EXPECT_EQ(depth(Algorithm::kDirect, 16), 1u);
  EXPECT_EQ(depth(Algorithm::kRing, 16), 15u);
  EXPECT_EQ(depth(Algorithm::kHalvingDoubling, 16), 4u);
  EXPECT_EQ(depth(Algorithm::kHalvingDoubling, 19), 5u);
  EXPECT_EQ(depth(Algorithm::kTree, 16), 4u);
  EXPECT_EQ(depth(Algorithm::kTree, 9), 3u);
}

// So that all members have the same bits when each of them sums.
TEST(PlanShapeTest, InOneShotEveryOwnerSumsInTheOrderOfRanks) {
  const Plan plan({.algorithm = Algorithm::kOneShot, .size = 4, .paths = {}});
  for (uint32_t owner = 0; owner < 4; ++owner) {
    EXPECT_EQ(plan.Reduce(owner, 0, owner), (ReduceNode{.operands = {0, 1, 2, 3}, .parent = {}}));
  }
  EXPECT_EQ(plan.Reduce(2, 0, 3), (ReduceNode{.operands = {3}, .parent = 2}));
}

TEST(PlanShapeTest, ARingSumsFromTheOwnersSuccessorToTheOwner) {
  const Plan ring({.algorithm = Algorithm::kRing, .size = 4, .paths = {}});
  EXPECT_EQ(ring.Reduce(2, 0, 3), (ReduceNode{.operands = {3}, .parent = 0}));
  EXPECT_EQ(ring.Reduce(2, 0, 0), (ReduceNode{.operands = {3, 0}, .parent = 1}));
  EXPECT_EQ(ring.Reduce(2, 0, 2), (ReduceNode{.operands = {1, 2}, .parent = {}}));
  EXPECT_EQ(ring.Spread(2, 0, 3), (SpreadNode{.parent = 2, .children = {0}}));
  EXPECT_EQ(ring.Spread(2, 0, 1), (SpreadNode{.parent = 0, .children = {}}));
}

TEST(PlanShapeTest, SeveralRingsUseDisjointLinks) {
  const Plan rings({.algorithm = Algorithm::kMultiRing, .size = 5, .paths = {}});
  EXPECT_EQ(rings.stripes(), 4u);
  std::set<std::pair<uint32_t, uint32_t>> links;
  for (uint32_t stripe = 0; stripe < rings.stripes(); ++stripe) {
    for (uint32_t rank = 0; rank < 5; ++rank) {
      const uint32_t owner = rank == 0 ? 1 : 0;
      EXPECT_TRUE(links.emplace(rank, *rings.Reduce(owner, stripe, rank).parent).second);
    }
  }
  // With two members there is one ring; with six, only the strides 1 and 5 visit all members.
  EXPECT_EQ(Plan({.algorithm = Algorithm::kMultiRing, .size = 2, .paths = {}}).stripes(), 1u);
  EXPECT_EQ(Plan({.algorithm = Algorithm::kMultiRing, .size = 6, .paths = {}}).stripes(), 2u);
}

class HierarchyTest : public testing::Test {
 protected:
  // Two racks of four members with two hosts each; ranks alternate between racks, as a careless
  // launcher would assign them.
  HierarchyTest() {
    for (uint32_t rank = 0; rank < 8; ++rank) {
      paths_.push_back(ParseTopologyPath(absl::StrCat("z/r", rank % 2, "/h", rank / 4)));
    }
  }
  uint32_t Rack(uint32_t rank) const { return rank % 2; }
  Plan Make() const {
    return Plan({.algorithm = Algorithm::kHierarchical, .size = 8, .paths = paths_});
  }

  std::vector<TopologyPath> paths_;
};

// The other rack's sum of a part crosses once; a ring in the order of ranks would cross eight
// times.
TEST_F(HierarchyTest, APartCrossesBetweenRacksOnce) {
  const Plan plan = Make();
  std::map<uint32_t, int> speaks_across;
  for (uint32_t owner = 0; owner < 8; ++owner) {
    int reduce_crossings = 0;
    int spread_crossings = 0;
    for (uint32_t rank = 0; rank < 8; ++rank) {
      const ReduceNode node = plan.Reduce(owner, 0, rank);
      if (node.parent && Rack(*node.parent) != Rack(rank)) {
        ++reduce_crossings;
        ++speaks_across[rank];
      }
      const SpreadNode spread = plan.Spread(owner, 0, rank);
      if (spread.parent && Rack(*spread.parent) != Rack(rank)) ++spread_crossings;
    }
    EXPECT_EQ(reduce_crossings, 1);
    EXPECT_EQ(spread_crossings, 1);
  }
  // Each member represents its rack for one part: no single leader.
  EXPECT_EQ(speaks_across.size(), 8u);
}

TEST_F(HierarchyTest, UnevenRacksShareTheWorkToo) {
  paths_[6] = ParseTopologyPath("z/r1/h1");
  const Plan plan = Make();  // 3 and 5 members
  std::map<uint32_t, int> represents;
  for (uint32_t owner = 0; owner < 8; ++owner) {
    int crossings = 0;
    for (uint32_t rank = 0; rank < 8; ++rank) {
      const ReduceNode node = plan.Reduce(owner, 0, rank);
      if (!node.parent || paths_[*node.parent].rack() == paths_[rank].rack()) continue;
      ++crossings;
      ++represents[rank];
    }
    EXPECT_EQ(crossings, 1);
  }
  for (const auto& [rank, parts] : represents) EXPECT_LE(parts, 2) << rank;
}

TEST(PlanShapeTest, ManyPlacesOfOneDomainFormAChain) {
  const Plan plan({.algorithm = Algorithm::kHierarchical, .size = 20, .paths = {}});
  EXPECT_EQ(Depth(plan, 3, 3), 19u);
  EXPECT_EQ(plan.Reduce(3, 0, 3), (ReduceNode{.operands = {3, 2}, .parent = {}}));
  EXPECT_EQ(plan.Reduce(3, 0, 4), (ReduceNode{.operands = {4}, .parent = 5}));
}

}  // namespace
}  // namespace covey

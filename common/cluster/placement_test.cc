// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/placement.h"

#include <algorithm>
#include <map>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

std::vector<ShardHome> Homes(uint32_t servers, uint32_t loops) {
  std::vector<ShardHome> homes;
  for (uint32_t server = 0; server < servers; ++server) {
    for (uint32_t loop = 1; loop <= loops; ++loop) {
      homes.push_back({.address = {NodeId(server + 2), loop}, .server_rank = server});
    }
  }
  return homes;
}

TEST(PlacementTest, AutomaticShardsAreWithinTheLimits) {
  EXPECT_EQ(AutomaticShardBytes(100, 1), kShardBytesDefaultMin);
  EXPECT_EQ(AutomaticShardBytes(uint64_t{1} << 30, 1), kShardBytesDefaultMax);
  EXPECT_EQ(AutomaticShardBytes(4 << 20, 2), 512 << 10);
  EXPECT_EQ(AutomaticShardBytes((4 << 20) + 100, 2) % 64, 0);
  EXPECT_EQ(ShardCount(kKeySlots, SparseShardBytes(1)), 2);
  EXPECT_EQ(ShardCount(kKeySlots, SparseShardBytes(5)), 10);
  EXPECT_LE(ShardCount(kKeySlots, SparseShardBytes(100'000)), kKeySlots);
}

TEST(PlacementTest, SpreadsOverServersBeforeLoops) {
  // Two shards, two servers of two loops: one each.
  const auto shards = PlaceShards(32, 64, Homes(2, 2));
  ASSERT_EQ(shards.size(), 2);
  EXPECT_EQ(shards[0].home, (Address{NodeId(2), 1}));
  EXPECT_EQ(shards[1].home, (Address{NodeId(3), 1}));
}

TEST(PlacementTest, PrefersTheLoopWithTheFewestBytes) {
  auto homes = Homes(1, 3);
  homes[0].bytes = 128;
  homes[1].bytes = 64;
  homes[2].bytes = 256;
  const auto shards = PlaceShards(16, 64, homes);
  ASSERT_EQ(shards.size(), 1);
  EXPECT_EQ(shards[0].home, (Address{NodeId(2), 2}));
}

TEST(PlacementTest, WhatIsHeadedCountsTwice) {
  auto homes = Homes(2, 1);
  homes[0].bytes = homes[1].bytes = 128;
  homes[0].head_bytes = 128;
  homes[0].heads = 2;
  EXPECT_EQ(PlaceShards(16, 64, homes)[0].home, (Address{NodeId(3), 1}));
  homes[1].head_bytes = 128;
  homes[1].heads = 1;
  EXPECT_EQ(PlaceShards(16, 64, homes)[0].home, (Address{NodeId(3), 1})) << "fewer heads";
  homes[1].bytes = 512;
  EXPECT_EQ(PlaceShards(16, 64, homes)[0].home, (Address{NodeId(2), 1}));
}

TEST(PlacementTest, RandomTablesAreCoveredAndBalancedWithinOneShard) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    auto homes = Homes(1 + random.Below(5), 1 + random.Below(4));
    uint64_t largest_bytes = 0;
    // Several tables one after the other: existing shards count.
    for (int table = 0; table < 4; ++table) {
      const uint64_t elements = 1 + random.Below(200000);
      const uint64_t shard_bytes = 64 * (1 + random.Below(1000));
      const auto shards = PlaceShards(elements, shard_bytes, homes);
      EXPECT_EQ(shards.size(), ShardCount(elements, shard_bytes));
      uint64_t covered = 0;
      for (const PlacedShard& shard : shards) {
        ASSERT_EQ(shard.first_element, covered);
        ASSERT_EQ(shard.first_element % 16, 0);
        ASSERT_GT(shard.element_count, 0);
        ASSERT_LE(shard.element_count * 4, shard_bytes);
        covered += shard.element_count;
        largest_bytes = std::max(largest_bytes, shard.element_count * 4);
        const auto home = std::find_if(homes.begin(), homes.end(), [&](const ShardHome& candidate) {
          return candidate.address == shard.home;
        });
        ASSERT_NE(home, homes.end());
        home->bytes += shard.element_count * 4;
        home->head_bytes += shard.element_count * 4;
        ++home->heads;
      }
      EXPECT_EQ(covered, elements);
      const auto [least, most] =
          std::minmax_element(homes.begin(), homes.end(),
                              [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
      EXPECT_LE(most->bytes - least->bytes, largest_bytes);
    }
    auto reversed = homes;
    std::reverse(reversed.begin(), reversed.end());
    const auto a = PlaceShards(5000, 640, homes);
    const auto b = PlaceShards(5000, 640, reversed);
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) EXPECT_EQ(a[i].home, b[i].home);
  }
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "worker/layout/part_map.h"

#include <algorithm>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

// A table whose shards have the given element counts.
proto::Table TableOf(uint32_t id, const std::vector<uint64_t>& shards) {
  proto::Table table;
  table.set_id(id);
  uint64_t first = 0;
  for (const uint64_t count : shards) {
    proto::Shard& shard = *table.add_shards();
    shard.set_index(static_cast<uint32_t>(table.shards_size() - 1));
    shard.set_first_element(first);
    shard.set_element_count(count);
    first += count;
  }
  return table;
}

std::vector<const proto::Table*> Pointers(const std::vector<proto::Table>& tables) {
  std::vector<const proto::Table*> pointers;
  for (const proto::Table& table : tables) pointers.push_back(&table);
  return pointers;
}

std::vector<uint64_t> Loads(const PartMap& map, size_t tables, uint32_t members) {
  std::vector<uint64_t> loads(members, 0);
  for (size_t t = 0; t < tables; ++t) {
    for (uint32_t m = 0; m < members; ++m) loads[m] += map.parts_of(t)[m].elements.count;
  }
  return loads;
}

TEST(PartMapTest, RandomModelsAreCoveredAndBalanced) {
  Random random(7);
  for (int round = 0; round < 500; ++round) {
    const uint32_t members = 1 + static_cast<uint32_t>(random.Below(9));
    std::vector<proto::Table> tables;
    uint64_t total = 0;
    uint64_t largest_shard = 0;
    for (uint32_t t = 0; t < 1 + random.Below(12); ++t) {
      std::vector<uint64_t> shards;
      for (uint64_t s = 0; s < 1 + random.Below(10); ++s) {
        shards.push_back(1 + random.Below(random.Chance(0.5) ? 10 : 100000));
        total += shards.back();
        largest_shard = std::max(largest_shard, shards.back());
      }
      tables.push_back(TableOf(t + 1, shards));
    }
    const PartMap map(Pointers(tables), members);
    for (size_t t = 0; t < tables.size(); ++t) {
      uint32_t next_shard = 0;
      uint64_t next_element = 0;
      for (const TablePart& part : map.parts_of(t)) {
        if (part.shard_count == 0) {
          EXPECT_EQ(part.elements.count, 0u);
          continue;
        }
        EXPECT_EQ(part.first_shard.value(), next_shard);
        EXPECT_EQ(part.elements.first, next_element);
        next_shard += part.shard_count;
        next_element += part.elements.count;
      }
      EXPECT_EQ(next_shard, static_cast<uint32_t>(tables[t].shards_size()));
    }
    const std::vector<uint64_t> loads = Loads(map, tables.size(), members);
    EXPECT_LE(*std::max_element(loads.begin(), loads.end()), total / members + 1 + largest_shard);
  }
}

TEST(PartMapTest, SmallTablesSpreadOverMembers) {
  std::vector<proto::Table> tables;
  for (uint32_t t = 0; t < 4; ++t) tables.push_back(TableOf(t + 1, {100}));
  const PartMap map(Pointers(tables), 4);
  EXPECT_EQ(Loads(map, 4, 4), (std::vector<uint64_t>{100, 100, 100, 100}));
}

TEST(PartMapTest, EqualShardsAreDividedEvenly) {
  const std::vector<proto::Table> tables = {TableOf(1, {64, 64, 64, 64, 64, 64, 64, 64})};
  const PartMap map(Pointers(tables), 4);
  EXPECT_EQ(Loads(map, 1, 4), (std::vector<uint64_t>{128, 128, 128, 128}));
}

TEST(PartMapTest, AloneAMemberHasEverything) {
  const std::vector<proto::Table> tables = {TableOf(1, {5, 6}), TableOf(2, {7})};
  const PartMap map(Pointers(tables), 1);
  EXPECT_EQ(map.parts_of(0)[0].elements, (PartRange{0, 11}));
  EXPECT_EQ(map.ranges_of(1), (std::vector<PartRange>{{0, 7}}));
}

}  // namespace
}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/layout/model_layout.h"

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;

proto::Table TableOf(const std::vector<uint64_t>& shards) {
  proto::Table table;
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

TEST(ModelLayoutTest, APartOfABucketIsWholeShardsOfItsTensors) {
  const std::vector<proto::Table> tables = {TableOf({4, 4}), TableOf({100}), TableOf({6, 2})};
  const ModelLayout layout(Pointers(tables), 2, {.tensor_bytes = 400});
  ASSERT_EQ(layout.buckets().size(), 2u);
  const Bucket& bucket = layout.buckets()[0];
  EXPECT_EQ(bucket.element_count, 16u);
  EXPECT_EQ(bucket.position(), 0u);
  EXPECT_EQ(layout.bucket_of(2), 0u);
  EXPECT_EQ(layout.place_of(2), (PartRange{8, 8}));
  EXPECT_EQ(layout.buckets()[1].position(), 1u);
  // The large tensor is one shard, so one member gets it; the other one gets the bucket.
  EXPECT_THAT(layout.buckets()[1].parts, ElementsAre(PartRange{}, PartRange{0, 100}));
  EXPECT_THAT(bucket.parts, ElementsAre(PartRange{0, 16}, PartRange{}));
  ASSERT_EQ(bucket.runs[0].size(), 2u);
  EXPECT_EQ(bucket.runs[0][1].tensor, 2u);
  EXPECT_EQ(bucket.runs[0][1].shard_count, 2u);
  EXPECT_EQ(bucket.runs[0][1].elements, (PartRange{8, 8}));
  EXPECT_THAT(layout.parts_of(2), ElementsAre(PartRange{0, 8}, PartRange{}));
}

TEST(ModelLayoutTest, KindsDoNotShareABucket) {
  const std::vector<proto::Table> tables = {TableOf({4}), TableOf({4})};
  const std::vector<FusionKind> kinds = {{}, {.is_local = true}};
  EXPECT_EQ(ModelLayout(Pointers(tables), 1, {}, kinds).buckets().size(), 2u);
  EXPECT_EQ(ModelLayout(Pointers(tables), 1, {}).buckets().size(), 1u);
}

TEST(ModelLayoutTest, RandomModelsHaveEveryShardInExactlyOneRun) {
  Random random(11);
  for (int round = 0; round < 300; ++round) {
    const uint32_t members = 1 + static_cast<uint32_t>(random.Below(6));
    std::vector<proto::Table> tables;
    for (uint64_t t = 0; t < 1 + random.Below(20); ++t) {
      std::vector<uint64_t> shards;
      for (uint64_t s = 0; s < 1 + random.Below(4); ++s) shards.push_back(1 + random.Below(40));
      tables.push_back(TableOf(shards));
    }
    const ModelLayout layout(Pointers(tables), members,
                             {.tensor_bytes = 300, .bucket_bytes = 1000, .span_bytes = 2000});
    std::vector<uint32_t> next_shard(tables.size(), 0);
    std::vector<size_t> next_element(tables.size(), 0);
    for (const Bucket& bucket : layout.buckets()) {
      for (uint32_t member = 0; member < members; ++member) {
        size_t elements = 0;
        for (const ShardRun& run : bucket.runs[member]) {
          EXPECT_EQ(run.elements.first, bucket.parts[member].first + elements);
          elements += run.elements.count;
          EXPECT_EQ(run.first_shard.value(), next_shard[run.tensor]);
          next_shard[run.tensor] += run.shard_count;
          const PartRange place = layout.place_of(run.tensor);
          EXPECT_EQ(run.elements.first, place.first + next_element[run.tensor]);
          next_element[run.tensor] += run.elements.count;
        }
        EXPECT_EQ(elements, bucket.parts[member].count);
      }
    }
    for (size_t t = 0; t < tables.size(); ++t) {
      EXPECT_EQ(next_shard[t], static_cast<uint32_t>(tables[t].shards_size()));
      EXPECT_EQ(next_element[t], layout.place_of(t).count);
      size_t in_parts = 0;
      for (const PartRange& part : layout.parts_of(t)) in_parts += part.count;
      EXPECT_EQ(in_parts, layout.place_of(t).count);
    }
  }
}

}  // namespace
}  // namespace covey::worker

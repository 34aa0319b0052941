// SPDX-License-Identifier: Apache-2.0
#include "client/engine/requests/key_batch.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/net/frame_checksum.h"
#include "common/table/key_list.h"
#include "common/table/key_slots.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAreArray;
using Keys = std::vector<uint64_t>;
using Floats = std::vector<float>;

const Keys kThreeShards = {20'000, 20'001, kKeySlots};

size_t ShardOf(uint64_t key, const Keys& ends) {
  size_t shard = 0;
  while (SlotOfKey(key) >= ends[shard]) ++shard;
  return shard;
}

Keys Draw(Random& random, size_t count, uint64_t bound) {
  Keys keys(count);
  for (uint64_t& key : keys) key = bound == 0 ? random.Next() : random.Below(bound);
  return keys;
}

void ExpectSplit(const KeyBatch& batch, const Keys& keys, const Keys& ends) {
  ASSERT_EQ(batch.size(), keys.size());
  ASSERT_EQ(batch.shards(), ends.size());
  // Ascending by shard and key.
  std::map<std::pair<size_t, uint64_t>, std::vector<size_t>> expected;
  for (size_t i = 0; i < keys.size(); ++i) {
    expected[{ShardOf(keys[i], ends), keys[i]}].push_back(i);
  }
  EXPECT_EQ(batch.distinct(), expected.size());
  auto next = expected.begin();
  for (size_t shard = 0; shard < ends.size(); ++shard) {
    for (const uint64_t key : batch.KeysOf(shard)) {
      ASSERT_NE(next, expected.end());
      ASSERT_EQ(next->first, std::make_pair(shard, key));
      ++next;
    }
  }
  EXPECT_EQ(next, expected.end());
}

TEST(KeyBatchTest, KeysGoToTheirShardsOnceAndAscending) {
  Random random(1);
  KeyBatch batch;
  for (const Keys& ends : {Keys{kKeySlots}, kThreeShards, Keys{1, kKeySlots}}) {
    for (const uint64_t bound : {uint64_t{1}, uint64_t{50}, uint64_t{1'000'000}, uint64_t{0}}) {
      for (const size_t count : {0, 1, 7, 5000}) {
        const Keys keys = Draw(random, count, bound);
        batch.Assign(keys, ends);
        ExpectSplit(batch, keys, ends);
      }
    }
  }
}

TEST(KeyBatchTest, KeysThatDifferInOneBitStayApart) {
  KeyBatch batch;
  for (int bit = 0; bit < 64; ++bit) {
    const Keys pair = {uint64_t{1} << bit, 0};
    batch.Assign(pair, Keys{kKeySlots});
    ExpectSplit(batch, pair, Keys{kKeySlots});
  }
  Keys keys = {0, ~uint64_t{0}};
  for (int bit = 0; bit < 64; ++bit) keys.push_back(uint64_t{1} << bit);
  batch.Assign(keys, kThreeShards);
  ExpectSplit(batch, keys, kThreeShards);
}

TEST(KeyBatchTest, RowsOfOneKeyAreAddedInTheOrderOfTheBatch) {
  KeyBatch batch;
  const Keys keys = {5, 3, 5, 5};
  batch.Assign(keys, Keys{kKeySlots});
  // (1 + 1e8) - 1e8 is 0 in single precision, and 1 + (1e8 - 1e8) is 1.
  const Floats rows = {1, 10, 7, 70, 1e8f, 20, -1e8f, 30};
  Floats sums(4);
  batch.SumRows(0, 2, rows, sums);
  EXPECT_EQ(sums, (Floats{7, 70, 0, 60}));
}

TEST(KeyBatchTest, KeysTravelWithTheirChecksum) {
  Random random(3);
  KeyBatch batch;
  for (const size_t size : {3000u, 5u, 0u, 400u}) {
    batch.Assign(Draw(random, size, 1'000'000), kThreeShards);
    for (size_t shard = 0; shard < 3; ++shard) {
      const EncodedKeys& sent = batch.OnWire(shard);
      const auto keys = DecodedKeys(sent.list, sent.frame);
      ASSERT_TRUE(keys.ok()) << keys.status();
      EXPECT_THAT(keys->As<uint64_t>(), ElementsAreArray(batch.KeysOf(shard)));
      EXPECT_EQ(sent.checksum, FrameChecksum(sent.frame));
    }
  }
}

TEST(KeyBatchTest, EachPlaceGetsTheRowOfItsKey) {
  Random random(2);
  const Keys keys = Draw(random, 3000, 500);
  KeyBatch batch;
  batch.Assign(keys, kThreeShards);
  Floats rows(keys.size() * 3, -1.0f);
  for (size_t shard = 0; shard < 3; ++shard) {
    Floats of_shard;
    for (const uint64_t key : batch.KeysOf(shard)) {
      for (int c = 0; c < 3; ++c) of_shard.push_back(static_cast<float>(key * 3 + c));
    }
    batch.SpreadRows(shard, 3, of_shard, rows);
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    for (int c = 0; c < 3; ++c) ASSERT_EQ(rows[i * 3 + c], static_cast<float>(keys[i] * 3 + c));
  }
}

TEST(KeyBatchTest, OneRowOfEachKeyIsPicked) {
  Random random(4);
  const Keys keys = Draw(random, 300, 50);
  KeyBatch batch;
  batch.Assign(keys, kThreeShards);
  Floats rows;
  for (const uint64_t key : keys) {
    for (int c = 0; c < 2; ++c) rows.push_back(static_cast<float>(key * 2 + c));
  }
  for (size_t shard = 0; shard < 3; ++shard) {
    const auto of_shard = batch.KeysOf(shard);
    Floats picked(of_shard.size() * 2);
    batch.PickRows(shard, 2, rows, picked);
    for (size_t i = 0; i < picked.size(); ++i) {
      ASSERT_EQ(picked[i], static_cast<float>(of_shard[i / 2] * 2 + i % 2));
    }
  }
}

TEST(KeyBatchTest, AnotherShardsPlacesStayAsTheyAre) {
  Keys keys;
  for (uint64_t key = 0; keys.size() < 100; ++key) keys.push_back(key);
  const Keys ends = {kKeySlots / 2, kKeySlots};
  KeyBatch batch;
  batch.Assign(keys, ends);
  Floats rows(100, -1.0f);
  batch.SpreadRows(0, 1, Floats(batch.KeysOf(0).size(), 4.0f), rows);
  for (size_t i = 0; i < 100; ++i) {
    EXPECT_EQ(rows[i], ShardOf(keys[i], ends) == 0 ? 4.0f : -1.0f);
  }
}

}  // namespace
}  // namespace covey

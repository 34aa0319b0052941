// SPDX-License-Identifier: Apache-2.0
#include "client/kept_rows.h"

#include <array>
#include <map>
#include <vector>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "common/table/key_slots.h"
#include "gtest/gtest.h"

namespace covey::client {
namespace {

using Keys = std::vector<uint64_t>;
using Floats = std::vector<float>;
using Places = std::vector<uint32_t>;

constexpr absl::Time kStart = absl::UnixEpoch();

ShardVersion At(uint64_t version, uint64_t generation = 1) {
  return {.generation = generation, .version = Version(version)};
}

// Of a table with one shard.
const std::vector<uint64_t> kOneShard = {kKeySlots};

const std::vector<uint64_t> kTwoShards = {kKeySlots / 2, kKeySlots};

// The lowest key of one of the two shards.
uint64_t KeyIn(uint64_t shard) {
  uint64_t key = 0;
  while (SlotOfKey(key) * 2 / kKeySlots != shard) ++key;
  return key;
}

// Keeps a row of a table with one shard.
void Keep(KeptRows& kept, uint64_t key, const Floats& row, absl::Time time = kStart,
          const ShardVersion& version = At(0)) {
  kept.Keep(time, Keys{key}, row, std::array{version});
}

// The places of the keys that have to be read.
Places Left(KeptRows& kept, absl::Time now, const Keys& keys) {
  Places left;
  Floats rows(keys.size());
  kept.Find(now, keys, rows, left);
  return left;
}

TEST(KeptRowsTest, CopiesRowsToTheirPlaces) {
  KeptRows kept(2, kOneShard, {.rows = 10, .age = absl::Seconds(1)});
  Keep(kept, 7, Floats{1, 2});
  Keep(kept, ~uint64_t{0}, Floats{3, 4});
  Keep(kept, 7, Floats{5, 6});
  Floats rows(8, -1.0f);
  Places left = {99};
  kept.Find(kStart, Keys{7, 8, ~uint64_t{0}, 7}, rows, left);
  EXPECT_EQ(rows, (Floats{5, 6, -1, -1, 3, 4, 5, 6}));
  EXPECT_EQ(left, (Places{99, 1}));
  EXPECT_EQ(kept.size(), 2);
  EXPECT_EQ(kept.counts().found, 3);
  EXPECT_EQ(kept.counts().missing, 1);
}

TEST(KeptRowsTest, ARowIsStaleBeyondItsAge) {
  KeptRows kept(1, kOneShard, {.rows = 10, .age = absl::Seconds(2)});
  Keep(kept, 1, Floats{1});
  EXPECT_EQ(Left(kept, kStart + absl::Seconds(2), {1}), Places());
  EXPECT_EQ(Left(kept, kStart + absl::Milliseconds(2001), {1}), Places{0});
  EXPECT_EQ(kept.counts().stale, 1);
  Keep(kept, 1, Floats{1}, kStart + absl::Seconds(2));
  EXPECT_EQ(Left(kept, kStart + absl::Seconds(4), {1}), Places());
}

// Ticks have 32 bits; the first tick is moved when they are full.
TEST(KeptRowsTest, AgesAreRightAfterVeryLongTimes) {
  KeptRows kept(1, kOneShard, {.rows = 10, .age = absl::Milliseconds(10)});
  absl::Time now = kStart;
  Keep(kept, 1, Floats{1}, now);
  for (int i = 0; i < 40; ++i) {
    now += absl::Seconds(2);
    ASSERT_EQ(Left(kept, now, {1, 2}), (Places{0, 1}));
    Keep(kept, 1, Floats{1}, now);
    Keep(kept, 2, Floats{1}, now - absl::Milliseconds(9));
    ASSERT_EQ(Left(kept, now + absl::Microseconds(900), {1, 2}), Places());
    ASSERT_EQ(Left(kept, now + absl::Milliseconds(9), {1, 2}), Places{1});
  }
  now += absl::Hours(10'000);
  EXPECT_EQ(Left(kept, now, {1, 2}), (Places{0, 1}));
  EXPECT_EQ(kept.size(), 0);
}

TEST(KeptRowsTest, AgesMayBeAsShortAsAMicrosecond) {
  KeptRows kept(1, kOneShard, {.rows = 10, .age = absl::Microseconds(1)});
  Keep(kept, 1, Floats{1}, kStart);
  EXPECT_EQ(Left(kept, kStart + absl::Microseconds(1), {1}), Places());
  EXPECT_EQ(Left(kept, kStart + absl::Nanoseconds(1001), {1}), Places{0});
}

TEST(KeptRowsTest, ARowIsStaleAfterSoManyUpdatesOfItsShard) {
  KeptRows kept(1, kTwoShards, {.rows = 10, .age = absl::InfiniteDuration(), .updates = 3});
  const Keys keys = {KeyIn(0), KeyIn(1)};
  kept.Keep(kStart, keys, Floats{1, 2}, std::array{At(10), At(10)});
  kept.SetNewest(std::array{At(13), At(14)});
  kept.SetNewest(std::array{At(13), At(11)});  // of a reply that was late
  EXPECT_EQ(Left(kept, kStart, keys), Places{1});
}

TEST(KeptRowsTest, RowsOfALostGenerationAreStale) {
  KeptRows kept(1, kOneShard, {.rows = 10, .age = absl::InfiniteDuration()});
  Keep(kept, 1, Floats{1}, kStart, At(10));
  kept.SetNewest(std::array{At(2, 2)});
  EXPECT_EQ(Left(kept, kStart, {1}), Places{0});
  Keep(kept, 1, Floats{2}, kStart, At(2, 2));
  EXPECT_EQ(Left(kept, kStart, {1}), Places());
  Keep(kept, 1, Floats{1}, kStart, At(11));  // late
  EXPECT_EQ(Left(kept, kStart, {1}), Places());
  Floats row(1);
  Places unfilled;
  kept.Find(kStart, Keys{1}, row, unfilled);
  EXPECT_EQ(row, Floats{2});
}

TEST(KeptRowsTest, OtherShardsKeepTheirRowsWhenOneBeginsAnew) {
  KeptRows kept(1, kTwoShards, {.rows = 10, .age = absl::InfiniteDuration()});
  const Keys keys = {KeyIn(0), KeyIn(1)};
  kept.Keep(kStart, keys, Floats{1, 2}, std::array{At(10), At(10)});
  kept.SetNewest(std::array{At(10), At(1, 2)});
  EXPECT_EQ(kept.size(), 1);
  EXPECT_EQ(Left(kept, kStart, keys), Places{1});
  kept.Keep(kStart, keys, Floats{3, 4}, std::array{At(11), At(12)});  // the second is of before
  EXPECT_EQ(Left(kept, kStart, keys), Places{1});
}

TEST(KeptRowsTest, ALateReadingReplacesNoLaterVersion) {
  KeptRows kept(1, kOneShard, {.rows = 10, .age = absl::Seconds(2)});
  Keep(kept, 1, Floats{14}, kStart + absl::Seconds(1), At(14));
  Keep(kept, 1, Floats{10}, kStart, At(10));
  Floats row(1);
  Places unfilled;
  kept.Find(kStart + absl::Seconds(3), Keys{1}, row, unfilled);
  EXPECT_EQ(row, Floats{14});
  EXPECT_EQ(unfilled, Places());
}

TEST(KeptRowsTest, RowsThatAreFoundStay) {
  KeptRows kept(1, kOneShard, {.rows = 4, .age = absl::InfiniteDuration()});
  for (uint64_t key = 0; key < 4; ++key) Keep(kept, key, Floats{0});
  for (uint64_t key = 4; key < 40; ++key) {
    EXPECT_EQ(Left(kept, kStart, {2}), Places());
    Keep(kept, key, Floats{0});
    Keep(kept, key, Floats{0});
    EXPECT_EQ(kept.size(), 4);
  }
  EXPECT_EQ(Left(kept, kStart, {39, 2, 35}), Places{2});
}

TEST(KeptRowsTest, AKeyThatComesOnceReplacesNoRow) {
  KeptRows kept(1, kOneShard, {.rows = 4, .age = absl::InfiniteDuration()});
  const Keys first = {0, 1, 2, 3};
  for (const uint64_t key : first) Keep(kept, key, Floats{0});
  Keep(kept, 4, Floats{0});
  EXPECT_EQ(Left(kept, kStart, first), Places());
  EXPECT_EQ(Left(kept, kStart, {4}), Places{0});
  Keep(kept, 4, Floats{0});
  EXPECT_EQ(Left(kept, kStart, {4}), Places());
}

TEST(KeptRowsTest, ARowThatWasRemovedIsMissing) {
  KeptRows kept(1, kOneShard, {.rows = 2, .age = absl::InfiniteDuration()});
  Keep(kept, 1, Floats{1});
  Keep(kept, 2, Floats{2});
  kept.Remove(1);
  kept.Remove(1);
  kept.Remove(3);
  EXPECT_EQ(Left(kept, kStart, {1, 2}), Places{0});
  Keep(kept, 4, Floats{4});
  EXPECT_EQ(Left(kept, kStart, {2, 4}), Places());
}

// More keys than one set has places for, in one call.
TEST(KeptRowsTest, AnswersManyKeysWithTheirRows) {
  constexpr size_t kWidth = 19;
  KeptRows kept(kWidth, kTwoShards, {.rows = 700, .age = absl::InfiniteDuration()});
  Keys keys;
  Floats rows;
  for (uint64_t key = 0; key < 500; ++key) {
    keys.push_back(key * key);
    for (size_t column = 0; column < kWidth; ++column) {
      rows.push_back(static_cast<float>(key * 100 + column));
    }
  }
  kept.Keep(kStart, keys, rows, std::array{At(1), At(1)});
  Floats found(rows.size());
  Places left;
  kept.Find(kStart, keys, found, left);
  EXPECT_GT(kept.size(), 400);
  EXPECT_EQ(left.size(), 500 - kept.size());
  for (const uint32_t place : left) {
    std::copy_n(rows.data() + place * kWidth, kWidth, found.data() + place * kWidth);
  }
  EXPECT_EQ(found, rows);
}

TEST(KeptRowsTest, NeverAnswersWithAnotherRow) {
  Random random(1);
  KeptRows kept(1, kOneShard, {.rows = 50, .age = absl::InfiniteDuration()});
  std::map<uint64_t, float> newest;
  for (int step = 0; step < 20'000; ++step) {
    const uint64_t key = random.Below(200);
    if (random.Chance(0.1)) {
      kept.Remove(key);
      continue;
    }
    Floats row(1);
    Places left;
    kept.Find(kStart, Keys{key}, row, left);
    if (left.empty()) {
      ASSERT_EQ(row[0], newest.at(key));
    } else {
      newest[key] = static_cast<float>(step);
      Keep(kept, key, Floats{newest[key]});
    }
    ASSERT_LE(kept.size(), 50);
  }
  EXPECT_GT(kept.counts().found, 2'000);
}

}  // namespace
}  // namespace covey::client

// SPDX-License-Identifier: Apache-2.0
#include "client/kept_rows.h"

#include <map>

#include "common/base/random.h"
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

KeptRows::Reading ReadAt(absl::Time time, uint64_t version = 0, uint32_t shard = 0,
                         uint64_t generation = 1) {
  return {.time = time, .shard = shard, .version = At(version, generation)};
}

// The places of the keys that have to be read.
Places Left(KeptRows& kept, absl::Time now, const Keys& keys) {
  Places left;
  Floats rows(keys.size());
  kept.Find(now, keys, rows, left);
  return left;
}

TEST(KeptRowsTest, CopiesRowsToTheirPlaces) {
  KeptRows kept(2, 1, {.rows = 10, .age = absl::Seconds(1)});
  kept.Keep(7, Floats{1, 2}, ReadAt(kStart));
  kept.Keep(~uint64_t{0}, Floats{3, 4}, ReadAt(kStart));
  kept.Keep(7, Floats{5, 6}, ReadAt(kStart));
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
  KeptRows kept(1, 1, {.rows = 10, .age = absl::Seconds(2)});
  kept.Keep(1, Floats{1}, ReadAt(kStart));
  EXPECT_EQ(Left(kept, kStart + absl::Seconds(2), {1}), Places());
  EXPECT_EQ(Left(kept, kStart + absl::Milliseconds(2001), {1}), Places{0});
  EXPECT_EQ(kept.counts().stale, 1);
  kept.Keep(1, Floats{1}, ReadAt(kStart + absl::Seconds(2)));
  EXPECT_EQ(Left(kept, kStart + absl::Seconds(4), {1}), Places());
}

TEST(KeptRowsTest, ARowIsStaleAfterSoManyUpdatesOfItsShard) {
  KeptRows kept(1, 2, {.rows = 10, .age = absl::InfiniteDuration(), .updates = 3});
  kept.Keep(1, Floats{1}, ReadAt(kStart, 10, 0));
  kept.Keep(2, Floats{2}, ReadAt(kStart, 10, 1));
  kept.SetNewest(0, At(13));
  kept.SetNewest(1, At(14));
  kept.SetNewest(1, At(11));  // of a reply that was late
  EXPECT_EQ(Left(kept, kStart, {1, 2}), Places{1});
}

TEST(KeptRowsTest, RowsOfALostGenerationAreStale) {
  KeptRows kept(1, 1, {.rows = 10, .age = absl::InfiniteDuration()});
  kept.Keep(1, Floats{1}, ReadAt(kStart, 10));
  kept.SetNewest(0, At(2, 2));
  EXPECT_EQ(Left(kept, kStart, {1}), Places{0});
  kept.Keep(1, Floats{2}, ReadAt(kStart, 2, 0, 2));
  EXPECT_EQ(Left(kept, kStart, {1}), Places());
  kept.Keep(1, Floats{1}, ReadAt(kStart, 11));  // late
  EXPECT_EQ(Left(kept, kStart, {1}), Places());
  Floats row(1);
  Places unfilled;
  kept.Find(kStart, Keys{1}, row, unfilled);
  EXPECT_EQ(row, Floats{2});
}

TEST(KeptRowsTest, ALateReadingReplacesNoLaterVersion) {
  KeptRows kept(1, 1, {.rows = 10, .age = absl::Seconds(2)});
  kept.Keep(1, Floats{14}, ReadAt(kStart + absl::Seconds(1), 14));
  kept.Keep(1, Floats{10}, ReadAt(kStart, 10));
  Floats row(1);
  Places unfilled;
  kept.Find(kStart + absl::Seconds(3), Keys{1}, row, unfilled);
  EXPECT_EQ(row, Floats{14});
  EXPECT_EQ(unfilled, Places());
}

TEST(KeptRowsTest, RowsThatAreFoundStay) {
  KeptRows kept(1, 1, {.rows = 4, .age = absl::InfiniteDuration()});
  for (uint64_t key = 0; key < 4; ++key) kept.Keep(key, Floats{0}, ReadAt(kStart));
  for (uint64_t key = 4; key < 40; ++key) {
    EXPECT_EQ(Left(kept, kStart, {2}), Places());
    kept.Keep(key, Floats{0}, ReadAt(kStart));
    EXPECT_EQ(kept.size(), 4);
  }
  EXPECT_EQ(Left(kept, kStart, {39, 2, 35}), Places{2});
}

TEST(KeptRowsTest, ARowThatWasRemovedIsMissing) {
  KeptRows kept(1, 1, {.rows = 2, .age = absl::InfiniteDuration()});
  kept.Keep(1, Floats{1}, ReadAt(kStart));
  kept.Keep(2, Floats{2}, ReadAt(kStart));
  kept.Remove(1);
  kept.Remove(1);
  kept.Remove(3);
  EXPECT_EQ(Left(kept, kStart, {1, 2}), Places{0});
  kept.Keep(4, Floats{4}, ReadAt(kStart));
  EXPECT_EQ(Left(kept, kStart, {2, 4}), Places());
}

TEST(KeptRowsTest, NeverAnswersWithAnotherRow) {
  Random random(1);
  KeptRows kept(1, 1, {.rows = 50, .age = absl::InfiniteDuration()});
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
      kept.Keep(key, Floats{newest[key]}, ReadAt(kStart));
    }
    ASSERT_LE(kept.size(), 50);
  }
  EXPECT_GT(kept.counts().found, 2'000);
}

}  // namespace
}  // namespace covey::client

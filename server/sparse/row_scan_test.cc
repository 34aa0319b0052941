// SPDX-License-Identifier: Apache-2.0

// Reading all rows of a shard, and following what changes.

#include "server/sparse/row_scan.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/table/key_slots.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/sparse/eviction_plan.h"
#include "server/sparse/removed_keys.h"
#include "server/sparse/sparse_shard.h"
#include "server/testing/row_floats.h"

namespace covey::server {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Floats = std::vector<float>;
using Keys = std::vector<uint64_t>;
using Content = std::map<uint64_t, Floats>;  // by MixBits(key)

constexpr uint64_t kWidth = 3;

SparseShardConfig Config(uint64_t rows_max = kRowsPerShardMax) {
  return {.first_slot = 0,
          .slot_count = kKeySlots,
          .width = kWidth,
          .rows_max = rows_max,
          .learning_rate = {.base_rate = 1}};
}

std::shared_ptr<SparseShard> Open(const SparseShardConfig& config) {
  return SparseShard::Create(config).value();
}

// One update that adds 1 to each row. Plans evictions first, as the head does.
void Add(SparseShard& shard, const Keys& keys) {
  const Floats gradient(keys.size() * shard.width(), -1);
  ASSERT_TRUE(shard.Apply(keys, gradient, 1, 1, PlanEvictions(shard, keys)).ok());
}

Keys Draw(Random& random, const SparseShard& shard, size_t count, uint64_t below) {
  Keys keys(count);
  for (uint64_t& key : keys) key = random.Below(below);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::erase_if(keys, [&](uint64_t key) { return !shard.Holds(key); });
  return keys;
}

Keys KeysIn(const Buffer& buffer) {
  const std::span<const uint64_t> keys = buffer.As<uint64_t>();
  return {keys.begin(), keys.end()};
}

Content ContentOf(const SparseShard& shard) {
  Content content;
  shard.ForEachRow(
      [&](const SparseRow& row) { content[MixBits(row.key)] = FloatsOf(row, shard.layout()); });
  return content;
}

Content RangeOf(const Content& content, uint64_t first, uint64_t last) {
  return {content.lower_bound(first), content.upper_bound(last)};
}

// Follows a shard as a client does: what it holds, and the version from which it goes on.
class Follower {
 public:
  enum class Removed { kTaken, kIgnored };
  explicit Follower(const SparseShard& shard, Removed removed = Removed::kTaken)
      : shard_(shard), removed_(removed) {}

  // Reads a whole pass. `between` runs after each piece. False: it has to begin again.
  template <typename Between>
  bool Pass(size_t bytes_max, size_t entries_max, const Between& between) {
    const uint64_t first_slot = shard_.config().first_slot;
    const uint64_t end = (first_slot + shard_.config().slot_count) << 48;  // 0: beyond all
    RowScan scan{.first = first_slot << 48,
                 .since = since_,
                 .bytes_max = bytes_max,
                 .entries_max = entries_max};
    const uint64_t next_since = shard_.version();
    for (;; scan.first = last_ + 1) {
      if (!shard_.CheckScan(scan).ok()) return false;
      Take(scan, shard_.Scan(scan));
      if (last_ + 1 == end) break;
      between();
    }
    since_ = next_since;
    return true;
  }
  void BeginAgain() {
    since_.reset();
    content_.clear();
  }
  const Content& content() const { return content_; }
  size_t pieces() const { return pieces_; }

 private:
  void Take(const RowScan& scan, const ScannedRows& piece) {
    ++pieces_;
    last_ = piece.last;
    ASSERT_GE(last_, scan.first);
    for (const uint64_t key : KeysIn(piece.removed)) {
      ASSERT_TRUE(MixBits(key) >= scan.first && MixBits(key) <= last_);
      if (removed_ == Removed::kTaken) content_.erase(MixBits(key));
    }
    const Keys keys = KeysIn(piece.keys);
    const std::span<const float> values = piece.values.As<float>();
    ASSERT_EQ(values.size(), keys.size() * kWidth);
    for (size_t i = 0; i < keys.size(); ++i) {
      ASSERT_GE(MixBits(keys[i]), i == 0 ? scan.first : MixBits(keys[i - 1]) + 1);
      ASSERT_LE(MixBits(keys[i]), last_);
      const auto row = values.subspan(i * kWidth, kWidth);
      content_[MixBits(keys[i])] = Floats(row.begin(), row.end());
    }
    // The range is as it is now, whatever has happened since the pass before.
    if (removed_ == Removed::kTaken) {
      ASSERT_EQ(RangeOf(content_, scan.first, last_),
                RangeOf(ContentOf(shard_), scan.first, last_));
    }
  }

  const SparseShard& shard_;
  const Removed removed_;
  std::optional<uint64_t> since_;
  uint64_t last_ = 0;
  Content content_;
  size_t pieces_ = 0;
};

class FollowerTest : public ::testing::TestWithParam<uint64_t> {};

// Keys come, change, are evicted and erased, and come again, between the pieces of a reader.
TEST_P(FollowerTest, HoldsWhatTheShardHolds) {
  Random random(GetParam());
  SparseShardConfig config = Config(/*rows_max=*/2000);
  config.evicts = true;
  if (GetParam() % 2 == 1) {
    config.rows_max = 300;
    config.first_slot = 1000;
    config.slot_count = 20'000;
    config.admission.after = 2;
  }
  const auto shard = Open(config);
  const auto change = [&] {
    Add(*shard, Draw(random, *shard, 1 + random.Below(400), 20'000));
    if (random.Below(3) == 0) {
      for (const uint64_t key : Draw(random, *shard, 50, 20'000)) shard->Erase(key);
    }
  };
  Follower follower(*shard);
  Follower careless(*shard, Follower::Removed::kIgnored);
  size_t repeats = 0;
  for (int pass = 0; pass < 20; ++pass) {
    for (uint64_t updates = random.Below(5); updates > 0; --updates) change();
    const size_t bytes = 500 + random.Below(8000);
    const size_t entries = 100 + random.Below(1000);
    while (!follower.Pass(bytes, entries, change)) {
      follower.BeginAgain();
      ++repeats;
      ASSERT_LT(repeats, 100);
    }
    if (::testing::Test::HasFailure()) return;
    careless.Pass(bytes, entries, [] {});
  }
  EXPECT_GT(shard->totals().evicted, 50);
  EXPECT_GT(follower.pieces(), 30);
  if (!follower.Pass(1 << 20, 1 << 20, [] {})) {
    follower.BeginAgain();
    ASSERT_TRUE(follower.Pass(1 << 20, 1 << 20, [] {}));
  }
  EXPECT_EQ(follower.content(), ContentOf(*shard));
  EXPECT_NE(careless.content(), ContentOf(*shard));
}

INSTANTIATE_TEST_SUITE_P(Seeds, FollowerTest, ::testing::Range<uint64_t>(0, 6));

TEST(RowScanTest, ReadsOnlyWhatHasChanged) {
  const auto shard = Open(Config());
  Add(*shard, {1, 2, 3, 4});
  Add(*shard, {2});
  Add(*shard, {5});
  shard->Erase(3);
  const auto changed = [&](uint64_t since) {
    Keys keys = KeysIn(shard->Scan({.since = since}).keys);
    std::sort(keys.begin(), keys.end());
    return keys;
  };
  EXPECT_THAT(changed(0), ElementsAre(1, 2, 4, 5));
  EXPECT_THAT(changed(1), ElementsAre(2, 5));
  EXPECT_THAT(changed(2), ElementsAre(5));
  EXPECT_THAT(changed(3), IsEmpty());
  EXPECT_THAT(KeysIn(shard->Scan({.since = 3}).removed), ElementsAre(3));
  EXPECT_THAT(KeysIn(shard->Scan({}).removed), IsEmpty());
}

TEST(RowScanTest, APieceEndsWithinItsBounds) {
  SparseShardConfig config = Config();
  config.admission.after = 2;
  const auto shard = Open(config);
  Random random(1);
  const Keys keys = Draw(random, *shard, 3000, ~uint64_t{0});
  Add(*shard, keys);
  // They wait for admission: the shard looks at them, and there is nothing to read.
  const ScannedRows waiting = shard->Scan({.entries_max = 1000});
  EXPECT_THAT(KeysIn(waiting.keys), IsEmpty());
  EXPECT_LT(waiting.last, ~uint64_t{0} / 2);
  // No reader has seen a key that waited.
  ASSERT_TRUE(shard->Erase(keys[0]));
  EXPECT_THAT(KeysIn(shard->Scan({.since = 0}).removed), IsEmpty());
  Add(*shard, {keys[0]});
  Add(*shard, keys);
  EXPECT_EQ(KeysIn(shard->Scan({.bytes_max = 10 * (8 + kWidth * 4)}).keys).size(), 10);
  EXPECT_EQ(KeysIn(shard->Scan({.bytes_max = 1}).keys).size(), 1);
  EXPECT_EQ(KeysIn(shard->Scan({.entries_max = 7}).keys).size(), 7);
  EXPECT_EQ(KeysIn(shard->Scan({}).keys).size(), 3000);
}

TEST(RowScanTest, KnowsWhatItCannotTell) {
  SparseShardConfig config = Config();
  config.first_slot = 0x1000;
  config.slot_count = 0x1000;
  const auto shard = Open(config);
  const auto why = [&](const RowScan& scan) { return shard->CheckScan(scan); };
  const uint64_t first = uint64_t{0x1000} << 48;
  EXPECT_TRUE(absl::IsInvalidArgument(why({.first = first - 1})));
  EXPECT_TRUE(absl::IsInvalidArgument(why({.first = first << 1})));
  EXPECT_TRUE(why({.first = (first << 1) - 1, .since = 0}).ok());
  EXPECT_TRUE(absl::IsOutOfRange(why({.first = first, .since = 1})));
  EXPECT_THAT(std::string(why({.first = first, .since = 1}).message()),
              HasSubstr("the shard is at 0: that version is of another history"));
  // Few rows, so it remembers only the newest that went.
  Random random(5);
  const Keys keys = Draw(random, *shard, 20'000, ~uint64_t{0});
  ASSERT_GT(keys.size(), RemovedKeys::kAlwaysKept);
  Add(*shard, keys);
  for (size_t i = 0; i < RemovedKeys::kAlwaysKept; ++i) shard->Erase(keys[i]);
  Add(*shard, {keys[0]});
  EXPECT_TRUE(why({.first = first, .since = 0}).ok());
  shard->Erase(keys[0]);
  EXPECT_TRUE(absl::IsOutOfRange(why({.first = first, .since = 1})));
  EXPECT_THAT(std::string(why({.first = first, .since = 1}).message()),
              HasSubstr("is known after version 2 only; read all rows again"));
  EXPECT_TRUE(why({.first = first, .since = 2}).ok());
  // A shard that was filled knows nothing of before.
  const auto filled = shard->Empty();
  filled->RestoreCounts(10, 10);
  EXPECT_TRUE(absl::IsOutOfRange(filled->CheckScan({.first = first, .since = 9})));
  EXPECT_TRUE(filled->CheckScan({.first = first, .since = 10}).ok());
}

TEST(RowScanTest, StampsMayWrap) {
  const auto shard = Open(Config());
  shard->RestoreCounts((uint64_t{1} << 32) - 2, 1);
  const uint64_t begin = shard->version();
  for (uint64_t key = 0; key < 6; ++key) Add(*shard, {key});
  for (uint64_t after = 0; after <= 6; ++after) {
    Keys keys = KeysIn(shard->Scan({.since = begin + after}).keys);
    std::sort(keys.begin(), keys.end());
    ASSERT_EQ(keys.size(), 6 - after);
    for (size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(keys[i], after + i);
  }
}

TEST(RemovedKeysTest, DropsTheOldest) {
  RemovedKeys removed;
  const auto after = [&](uint64_t version) {
    Keys keys;
    removed.VisitAfter(version, [&](uint64_t mixed) { keys.push_back(mixed); });
    return keys;
  };
  removed.Add(10, 1, 0);
  removed.Add(20, 1, 0);
  removed.Add(10, 4, 0);
  EXPECT_EQ(removed.floor(), 0);
  EXPECT_THAT(after(0), ElementsAre(10, 20, 10));
  EXPECT_THAT(after(1), ElementsAre(10));
  EXPECT_THAT(after(4), IsEmpty());
  // As many as a quarter of the entries.
  for (size_t i = 3; i < 2000; ++i) removed.Add(i, 5, 8000);
  EXPECT_EQ(removed.floor(), 0);
  removed.Add(30, 6, 8000);
  EXPECT_EQ(removed.floor(), 1);
  EXPECT_EQ(after(1).size(), 1999);
  removed.Add(40, 7, 0);
  EXPECT_EQ(removed.floor(), 5);
  EXPECT_EQ(after(5).size(), 2);
  EXPECT_EQ(removed.bytes(), RemovedKeys::kAlwaysKept * 16);
  removed.Restart(9);
  EXPECT_EQ(removed.floor(), 9);
  EXPECT_THAT(after(9), IsEmpty());
}

}  // namespace
}  // namespace covey::server

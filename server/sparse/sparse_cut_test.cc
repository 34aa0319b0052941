// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/sparse_cut.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/planted_bug_switch.h"
#include "common/base/random.h"
#include "common/table/key_slots.h"
#include "gtest/gtest.h"
#include "server/sparse/row_piece.h"
#include "server/sparse/sparse_shard.h"
#include "server/testing/row_floats.h"

namespace covey::server {
namespace {

using Floats = std::vector<float>;
using Keys = std::vector<uint64_t>;

SparseShardConfig Config(OptimizerKind kind = OptimizerKind::kRowwiseAdagrad) {
  return {.first_slot = 0,
          .slot_count = kKeySlots,
          .width = 3,
          .initializer = {.kind = InitializerKind::kUniform, .a = -1, .b = 1, .seed = 5},
          .optimizer = {.kind = kind},
          .learning_rate = {.base_rate = 0.1}};
}

std::shared_ptr<SparseShard> Open(const SparseShardConfig& config) {
  return SparseShard::Create(config).value();
}

// An update of some of the keys below `bound`.
void Update(SparseShard& shard, Random& random, size_t count, uint64_t bound) {
  Keys keys(count);
  for (uint64_t& key : keys) key = random.Below(bound);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  Floats gradient(keys.size() * 3);
  for (float& x : gradient) x = static_cast<float>(random.Uniform() - 0.5);
  ASSERT_TRUE(shard.Apply(keys, gradient, 1).ok());
}

void Restore(SparseShard& shard, const SparseCut& cut, const std::vector<RowPiece>& pieces) {
  shard.RestoreCounts(cut.version(), cut.samples());
  for (const RowPiece& piece : pieces) ASSERT_TRUE(shard.RestoreRows(piece).ok());
  EXPECT_EQ(shard.rows(), cut.rows());
}

// Between any two pieces rows are updated, made, erased and made again: what was cut is the content
// of before, for each of two cuts at different versions.
TEST(SparseCutTest, ACutIsTheContentOfItsVersionWhateverComesLater) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const OptimizerKind kind = seed % 2 == 0 ? OptimizerKind::kAdam : OptimizerKind::kAdagrad;
    const auto shard = Open(Config(kind));
    const uint64_t bound = 1 + random.Below(4'000);
    const auto change = [&] {
      Update(*shard, random, random.Below(300), bound);
      for (uint64_t i = random.Below(100); i > 0; --i) shard->Erase(random.Below(bound));
    };
    for (uint64_t i = random.Below(20); i > 0; --i) change();
    struct Reading {
      uint64_t digest;
      std::unique_ptr<SparseCut> cut;
      std::vector<RowPiece> pieces;
      bool is_done = false;
    };
    std::vector<Reading> readings;
    for (int i = 0; i < 2; ++i) {
      readings.push_back({.digest = shard->Digest(), .cut = shard->Cut()});
      for (uint64_t more = random.Below(3); more > 0; --more) change();
    }
    while (!readings[0].is_done || !readings[1].is_done) {
      Reading& reading = readings[random.Below(2)];
      const RowPiece piece = reading.cut->Next(random.Below(10'000));
      reading.is_done |= piece.rows == 0;
      reading.pieces.push_back(piece);
      if (random.Below(2) == 0) change();
    }
    for (const Reading& reading : readings) {
      const auto copy = Open(Config(kind));
      Restore(*copy, *reading.cut, reading.pieces);
      ASSERT_EQ(copy->Digest(), reading.digest) << "seed " << seed;
      EXPECT_EQ(reading.cut->held_bytes(), 0);
    }
  }
}

TEST(SparseCutTest, ACutWithoutCopiesIsFound) {
  PlantBug(PlantedBug::kCutWithoutCopies);
  Random random(1);
  const auto shard = Open(Config());
  Update(*shard, random, 500, 1'000);
  const uint64_t digest = shard->Digest();
  const auto cut = shard->Cut();
  Update(*shard, random, 500, 1'000);
  std::vector<RowPiece> pieces;
  do {
    pieces.push_back(cut->Next(10'000));
  } while (pieces.back().rows > 0);
  PlantBug(PlantedBug::kNone);
  const auto copy = Open(Config());
  Restore(*copy, *cut, pieces);
  EXPECT_NE(copy->Digest(), digest);
}

TEST(SparseCutTest, OnlyRowsThatChangeBeforeTheyAreReadAreCopied) {
  Random random(1);
  const auto shard = Open(Config());
  Update(*shard, random, 5'000, 1'000'000);
  const auto cut = shard->Cut();
  EXPECT_EQ(cut->held_bytes(), 0);
  Update(*shard, random, 3'000, 1'000'000);
  const size_t once = cut->held_bytes();
  EXPECT_LT(once, 3'000 * shard->layout().row_bytes() / 20);  // most of these rows were new
  Keys keys;
  shard->ForEachRow([&](const SparseRow& row) { keys.push_back(row.key); });
  std::sort(keys.begin(), keys.end());
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(shard->Apply(keys, Floats(keys.size() * 3, 1.0f), 1).ok());
    EXPECT_EQ(cut->held_bytes(), cut->rows() * shard->layout().row_bytes());
  }
  size_t before = cut->held_bytes();
  while (cut->Next(1'000).rows > 0) {
    EXPECT_LT(cut->held_bytes(), before);
    before = cut->held_bytes();
  }
  EXPECT_EQ(before, 0);
  ASSERT_TRUE(shard->Apply(keys, Floats(keys.size() * 3, 1.0f), 1).ok());
  EXPECT_EQ(cut->held_bytes(), 0);
}

TEST(SparseCutTest, ARowNumberThatAnotherKeyGetsIsNoPartOfIt) {
  const auto shard = Open(Config());
  ASSERT_TRUE(shard->Apply(Keys{1, 2, 3, 4}, Floats(12, 1.0f), 1).ok());
  const auto cut = shard->Cut();
  const RowPiece first = cut->Next(1);
  ASSERT_EQ(first.rows, 1);
  // The row that was read goes, and its number becomes that of rows that were not there.
  ASSERT_TRUE(shard->Erase(RowPieceReader::Open(first, shard->layout()).value().Row(0).key));
  for (uint64_t key = 10; key < 40; ++key) {
    ASSERT_TRUE(shard->Apply(Keys{key}, Floats(3, 1.0f), 1).ok());
    ASSERT_TRUE(shard->Apply(Keys{key}, Floats(3, 1.0f), 1).ok());
    ASSERT_TRUE(shard->Erase(key));
  }
  ASSERT_TRUE(shard->Apply(Keys{50}, Floats(3, 1.0f), 1).ok());
  size_t rows = 1;
  for (RowPiece piece = cut->Next(1); piece.rows > 0; piece = cut->Next(1)) rows += piece.rows;
  EXPECT_EQ(rows, 4);
}

// Three shards are cut, and their rows taken by two of another cut of the table.
TEST(SparseCutTest, RowsGoToWhateverShardHoldsTheirSlots) {
  const auto part = [](uint64_t i, uint64_t of) {
    SparseShardConfig config = Config();
    config.first_slot = kKeySlots * i / of;
    config.slot_count = kKeySlots * (i + 1) / of - config.first_slot;
    return Open(config);
  };
  const auto push = [](SparseShard& shard, const Keys& keys) {
    Keys mine;
    for (const uint64_t key : keys) {
      if (shard.Holds(key)) mine.push_back(key);
    }
    ASSERT_TRUE(shard.Apply(mine, Floats(mine.size() * 3, 0.5f), 1).ok());
  };
  Keys keys;
  for (uint64_t key = 0; key < 5'000; ++key) keys.push_back(key * key);
  const auto whole = part(0, 1);
  push(*whole, keys);
  std::vector<std::shared_ptr<SparseShard>> to;
  for (uint64_t i = 0; i < 2; ++i) to.push_back(part(i, 2));
  uint64_t taken = 0;
  for (uint64_t i = 0; i < 3; ++i) {
    const auto from = part(i, 3);
    push(*from, keys);
    const auto cut = from->Cut();
    for (RowPiece piece = cut->Next(5'000); piece.rows > 0; piece = cut->Next(5'000)) {
      for (const auto& shard : to) taken += shard->RestoreRows(piece).value();
    }
  }
  EXPECT_EQ(taken, keys.size());
  for (const uint64_t key : keys) {
    const SparseShard& holder = *to[to[0]->Holds(key) ? 0 : 1];
    ASSERT_EQ(ReadRows(holder, Keys{key}), ReadRows(*whole, Keys{key}));
  }
}

TEST(SparseCutTest, APieceOfAnotherLayoutOrWithARowThatIsThereIsRefused) {
  const auto shard = Open(Config());
  ASSERT_TRUE(shard->Apply(Keys{1, 2}, Floats(6, 1.0f), 1).ok());
  RowPiece piece = shard->Cut()->Next(1'000);
  ASSERT_EQ(piece.rows, 2);
  EXPECT_EQ(shard->RestoreRows(piece).status().code(), absl::StatusCode::kFailedPrecondition);
  const auto other = Open(Config(OptimizerKind::kAdam));
  EXPECT_EQ(other->RestoreRows(piece).status().message(),
            "a piece of 2 rows has 64 bytes, not 52 for each; it is of another table");
  piece.rows = 3;
  const auto fresh = Open(Config());
  EXPECT_EQ(fresh->RestoreRows(piece).status().code(), absl::StatusCode::kInvalidArgument);
  piece.rows = uint64_t{1} << 61;
  EXPECT_EQ(fresh->RestoreRows(piece).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace covey::server

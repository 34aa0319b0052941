// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/row_places.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "common/base/random.h"
#include "common/table/key_slots.h"
#include "gtest/gtest.h"
#include "server/sparse/sparse_cut.h"
#include "server/sparse/sparse_shard.h"
#include "server/testing/row_floats.h"

// Remembered places change nothing but the time that lookups take.

namespace covey::server {
namespace {

using Floats = std::vector<float>;
using Keys = std::vector<uint64_t>;

SparseShardConfig Config() {
  return {.slot_count = kKeySlots,
          .width = 2,
          .initializer = {.kind = InitializerKind::kUniform, .a = -1, .b = 1, .seed = 5},
          .optimizer = {.kind = OptimizerKind::kAdagrad},
          .learning_rate = {.base_rate = 0.1}};
}

std::shared_ptr<SparseShard> Open(const SparseShardConfig& config) {
  return SparseShard::Create(config).value();
}

Floats Read(const SparseShard& shard, const Keys& keys, RowPlaces* places = nullptr) {
  return ReadRows(shard, keys, places);
}

// Ids, and keys that are aimed at one page, which becomes runs.
uint64_t Draw(Random& random, uint64_t ids) {
  return random.Chance(0.7) ? random.Below(ids) : UnmixBits(random.Below(20'000) << 20);
}

struct List {
  Keys keys;
  RowPlaces places;
};

List MakeList(Random& random, size_t count, uint64_t ids) {
  List list;
  for (size_t i = 0; i < count; ++i) list.keys.push_back(Draw(random, ids));
  std::sort(list.keys.begin(), list.keys.end());
  list.keys.erase(std::unique(list.keys.begin(), list.keys.end()), list.keys.end());
  return list;
}

// Lists are used again and again, while rows come and go, pages split, and cuts are read.
void UseListsAgain(const SparseShardConfig& config, int operations) {
  const auto with = Open(config);
  const auto without = Open(config);
  Random random(7);
  std::vector<List> lists;
  for (int i = 0; i < 20; ++i) lists.push_back(MakeList(random, 1 + random.Below(300), 2'000));
  std::unique_ptr<SparseCut> cut;
  std::unique_ptr<SparseCut> other_cut;
  uint64_t ids = 500;
  for (int i = 0; i < operations; ++i) {
    const double kind = random.Uniform();
    List& list = lists[random.Below(lists.size())];
    if (kind < 0.4) {
      ASSERT_EQ(Read(*with, list.keys, &list.places), Read(*without, list.keys)) << i;
    } else if (kind < 0.8) {
      Floats gradient(list.keys.size() * 2);
      for (float& x : gradient) x = static_cast<float>(random.Uniform());
      const auto refused = with->Apply(list.keys, gradient, 1, 1, {}, &list.places);
      ASSERT_EQ(refused.value(), without->Apply(list.keys, gradient, 1).value()) << i;
    } else if (kind < 0.9) {
      // Other clients make rows.
      const List others = MakeList(random, random.Below(400), ids);
      ids = std::min<uint64_t>(ids + 200, 40'000);
      const Floats gradient(others.keys.size() * 2, 0.5f);
      ASSERT_TRUE(with->Apply(others.keys, gradient, 1).ok());
      ASSERT_TRUE(without->Apply(others.keys, gradient, 1).ok());
    } else if (kind < 0.97) {
      for (int erased = 0; erased < 5; ++erased) {
        const uint64_t key = list.keys[random.Below(list.keys.size())];
        ASSERT_EQ(with->Erase(key), without->Erase(key));
      }
    } else if (kind < 0.98) {
      list = MakeList(random, 1 + random.Below(300), ids);
    } else {
      cut = with->Cut();
      other_cut = without->Cut();
    }
    if (cut != nullptr) {
      const RowPiece piece = cut->Next(2'000);
      const RowPiece other_piece = other_cut->Next(2'000);
      ASSERT_EQ(piece.rows, other_piece.rows) << i;
      if (piece.rows == 0) cut = nullptr;
    }
    // A pass over all rows.
    if (i % 16 == 0) {
      ASSERT_EQ(with->Digest(), without->Digest()) << i;
    }
  }
  ASSERT_EQ(with->Digest(), without->Digest());
  EXPECT_GT(with->rows(), 1'000);
}

TEST(RowPlacesTest, ReadsAndUpdatesAreTheSame) { UseListsAgain(Config(), 2'000); }

TEST(RowPlacesTest, AlsoWhereKeysWaitForAdmission) {
  SparseShardConfig config = Config();
  config.admission.after = 3;
  UseListsAgain(config, 1'000);
}

TEST(RowPlacesTest, AlsoWhereTheShardIsFull) {
  SparseShardConfig config = Config();
  config.rows_max = 1'500;
  UseListsAgain(config, 1'000);
}

TEST(RowPlacesTest, ARowThatTookTheNumberOfAnotherIsNotTakenForIt) {
  const auto shard = Open(Config());
  List list{.keys = {3, 5}, .places = {}};
  ASSERT_TRUE(shard->Apply(list.keys, Floats(4, 1.0f), 1, 1, {}, &list.places).ok());
  const Floats first = Read(*shard, list.keys, &list.places);
  ASSERT_TRUE(shard->Erase(5));
  ASSERT_TRUE(shard->Apply(Keys{9}, Floats(2, 3.0f), 1).ok());
  const Floats now = Read(*shard, list.keys, &list.places);
  EXPECT_EQ(Floats(now.begin(), now.begin() + 2), Floats(first.begin(), first.begin() + 2));
  EXPECT_EQ(Floats(now.begin() + 2, now.end()), Read(*Open(Config()), {5}));
}

TEST(RowPlacesTest, PlacesInOneShardAreNoneInAnother) {
  List list{.keys = {3, 5}, .places = {}};
  for (int i = 0; i < 3; ++i) {
    // It may lie where the one before it lay.
    const auto shard = Open(Config());
    ASSERT_TRUE(shard->Apply(Keys{static_cast<uint64_t>(5 + i)}, Floats(2, 1.0f), 1).ok());
    EXPECT_EQ(Read(*shard, list.keys, &list.places), Read(*shard, list.keys));
    ASSERT_TRUE(shard->Apply(list.keys, Floats(4, 1.0f), 1, 1, {}, &list.places).ok());
    EXPECT_EQ(Read(*shard, list.keys, &list.places), Read(*shard, list.keys));
  }
  // Nor are the keys that another shard held.
  SparseShardConfig config = Config();
  config.slot_count = 1;
  EXPECT_FALSE(Open(config)->Apply(list.keys, Floats(4, 1.0f), 1, 1, {}, &list.places).ok());
}

}  // namespace
}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/sparse_shard.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/buffer_pool.h"
#include "common/base/random.h"
#include "common/table/key_slots.h"
#include "gtest/gtest.h"
#include "server/sparse/sparse_cut.h"
#include "server/table/dense_shard.h"
#include "server/table/host_memory.h"
#include "server/testing/row_floats.h"

namespace covey::server {
namespace {

using Floats = std::vector<float>;
using Keys = std::vector<uint64_t>;

SparseShardConfig Config(size_t width, OptimizerKind kind = OptimizerKind::kAdagrad) {
  return {.first_slot = 0,
          .slot_count = kKeySlots,
          .width = width,
          .initializer = {.kind = InitializerKind::kUniform, .a = -1, .b = 1, .seed = 5},
          .optimizer = {.kind = kind},
          .learning_rate = {.base_rate = 0.1, .warmup_samples = 100}};
}

std::shared_ptr<SparseShard> Open(const SparseShardConfig& config) {
  return SparseShard::Create(config).value();
}

Floats RandomFloats(Random& random, size_t count) {
  Floats floats(count);
  for (float& x : floats) x = static_cast<float>(random.Uniform() * 2 - 1);
  return floats;
}

void Fill(SparseShard& copy, SparseShard& from) {
  const auto cut = from.Cut();
  copy.RestoreCounts(cut->version(), cut->samples());
  uint64_t rows = 0;
  for (;;) {
    const RowPiece piece = cut->Next(10'000);
    if (piece.rows == 0) break;
    ASSERT_EQ(copy.RestoreRows(piece).value(), piece.rows);
    rows += piece.rows;
  }
  ASSERT_EQ(rows, cut->rows());
}

Keys Draw(Random& random, size_t count, uint64_t (*draw)(Random&)) {
  Keys keys(count);
  for (uint64_t& key : keys) key = draw(random);
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  return keys;
}

TEST(SparseShardTest, MissingRowsReadAsTheirFirstValuesAndAreNotMade) {
  const auto shard = Open(Config(3));
  const Keys keys = {0, 7, 7, 1, uint64_t{1} << 63, ~uint64_t{0}};
  const Floats values = ReadRows(*shard, keys);
  for (size_t i = 0; i < keys.size(); ++i) {
    Floats first(3);
    Initialize(Config(3).initializer, keys[i] * 3, first);
    EXPECT_EQ(Floats(values.begin() + i * 3, values.begin() + i * 3 + 3), first) << keys[i];
  }
  EXPECT_EQ(shard->rows(), 0);
}

// SGD and Adagrad do not change a row that an update does not hold, so a dense shard with the same
// rows goes the same way.
TEST(SparseShardTest, HasTheBitsOfADenseShard) {
  for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdagrad}) {
    for (const size_t width : {1, 3, 16, 17, 100}) {
      constexpr uint64_t kRows = 300;
      const SparseShardConfig config = Config(width, kind);
      const auto sparse = Open(config);
      BufferPool spares(1 << 20);
      HostMemory memory(spares);
      const auto dense = DenseShard::Create({.element_count = kRows * width,
                                             .initializer = config.initializer,
                                             .optimizer = config.optimizer,
                                             .learning_rate = config.learning_rate},
                                            memory)
                             .value();
      Random random(width);
      for (int update = 0; update < 100; ++update) {
        const Keys keys =
            Draw(random, random.Below(kRows), [](Random& r) { return r.Below(kRows); });
        const Floats gradient = RandomFloats(random, keys.size() * width);
        Floats whole(kRows * width, 0.0f);
        for (size_t i = 0; i < keys.size(); ++i) {
          std::copy_n(gradient.begin() + i * width, width, whole.begin() + keys[i] * width);
        }
        const uint64_t samples = 1 + random.Below(50);
        ASSERT_EQ(sparse->Apply(keys, gradient, samples).value(), 0);
        ASSERT_TRUE(dense->Apply(whole, samples).ok());
      }
      Keys all(kRows);
      for (uint64_t key = 0; key < kRows; ++key) all[key] = key;
      const std::span<const float> expected = dense->Values().As<float>();
      EXPECT_EQ(ReadRows(*sparse, all), Floats(expected.begin(), expected.end()));
      EXPECT_EQ(sparse->version(), dense->version());
      EXPECT_EQ(sparse->samples(), dense->samples());
    }
  }
}

// However the slots are cut into shards.
TEST(SparseShardTest, APathOfARowDependsOnItsOwnGradientsOnly) {
  for (const OptimizerKind kind : {OptimizerKind::kAdam, OptimizerKind::kRowwiseAdagrad}) {
    const auto whole = Open(Config(5, kind));
    std::vector<std::shared_ptr<SparseShard>> parts;
    for (uint64_t part = 0; part < 7; ++part) {
      SparseShardConfig config = Config(5, kind);
      config.first_slot = kKeySlots * part / 7;
      config.slot_count = kKeySlots * (part + 1) / 7 - config.first_slot;
      parts.push_back(Open(config));
    }
    Random random(9);
    Keys all;
    for (int update = 0; update < 50; ++update) {
      const Keys keys = Draw(random, 500, [](Random& r) { return r.Below(3000) * r.Below(1000); });
      all.insert(all.end(), keys.begin(), keys.end());
      const Floats gradient = RandomFloats(random, keys.size() * 5);
      ASSERT_TRUE(whole->Apply(keys, gradient, 10).ok());
      for (const auto& part : parts) {
        Keys mine;
        Floats of_mine;
        for (size_t i = 0; i < keys.size(); ++i) {
          if (!part->Holds(keys[i])) continue;
          mine.push_back(keys[i]);
          of_mine.insert(of_mine.end(), gradient.begin() + i * 5, gradient.begin() + i * 5 + 5);
        }
        ASSERT_TRUE(part->Apply(mine, of_mine, 10).ok());
      }
    }
    size_t rows = 0;
    for (const auto& part : parts) rows += part->rows();
    EXPECT_EQ(rows, whole->rows());
    for (const uint64_t key : all) {
      const auto part = std::find_if(parts.begin(), parts.end(),
                                     [&](const auto& shard) { return shard->Holds(key); });
      ASSERT_EQ(ReadRows(**part, Keys{key}), ReadRows(*whole, Keys{key})) << key;
    }
  }
}

// However many other rows and updates there are.
TEST(SparseShardTest, APathOfARowDoesNotDependOnOtherRows) {
  constexpr uint64_t kKey = 77;
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kAdagrad, OptimizerKind::kRowwiseAdagrad,
        OptimizerKind::kAdam, OptimizerKind::kFtrl}) {
    SparseShardConfig config = Config(5, kind);
    config.learning_rate = {.base_rate = 0.1};
    if (kind == OptimizerKind::kFtrl) config.initializer = {};
    Floats alone;
    for (const size_t others : {size_t{0}, size_t{10}, size_t{100'000}}) {
      const auto shard = Open(config);
      Random of_row(3);
      Random of_others(others);
      for (int update = 0; update < 8; ++update) {
        Keys keys = Draw(of_others, others, [](Random& r) { return r.Next(); });
        Floats gradient = RandomFloats(of_others, keys.size() * 5);
        // Updates without the row come between.
        if (others > 0) {
          ASSERT_TRUE(shard->Apply(keys, gradient, 10).ok());
        }
        const Floats of_key = RandomFloats(of_row, 5);
        const auto at = std::lower_bound(keys.begin(), keys.end(), kKey) - keys.begin();
        keys.insert(keys.begin() + at, kKey);
        gradient.insert(gradient.begin() + at * 5, of_key.begin(), of_key.end());
        ASSERT_TRUE(shard->Apply(keys, gradient, 10).ok());
      }
      const Floats row = ReadRows(*shard, Keys{kKey});
      if (others == 0) alone = row;
      EXPECT_EQ(row, alone) << static_cast<int>(kind) << " among " << others;
    }
  }
}

// The pages of two shards have the same rows in the same places, so their cuts have the same bytes.
TEST(SparseShardTest, TheOrderInWhichRowsCameLeavesNoTrace) {
  const auto shard = Open(Config(3));
  Random random(8);
  for (int update = 0; update < 20; ++update) {
    const Keys keys = Draw(random, 1'000, [](Random& r) { return r.Next(); });
    ASSERT_TRUE(shard->Apply(keys, RandomFloats(random, keys.size() * 3), 1).ok());
  }
  std::vector<RowPiece> pieces;
  const auto cut = shard->Cut();
  for (RowPiece piece = cut->Next(1); piece.rows > 0; piece = cut->Next(1)) {
    pieces.push_back(piece);
  }
  ASSERT_EQ(pieces.size(), shard->rows());
  const auto bytes_of = [](SparseShard& of) {
    const Buffer frame = of.Cut()->Next(64 << 20).frame;
    return std::string(reinterpret_cast<const char*>(frame.data()), frame.size());
  };
  for (int order = 0; order < 3; ++order) {
    for (size_t i = pieces.size(); i > 1; --i) std::swap(pieces[i - 1], pieces[random.Below(i)]);
    const auto copy = Open(Config(3));
    copy->RestoreCounts(shard->version(), shard->samples());
    for (const RowPiece& piece : pieces) ASSERT_EQ(copy->RestoreRows(piece).value(), 1);
    // Rows that go and come back leave none either.
    for (size_t i = 0; i < pieces.size(); i += 3) {
      uint64_t key = 0;
      std::memcpy(&key, pieces[i].frame.data(), sizeof(key));
      ASSERT_TRUE(copy->Erase(key));
    }
    for (size_t i = 0; i < pieces.size(); i += 3) ASSERT_TRUE(copy->RestoreRows(pieces[i]).ok());
    EXPECT_TRUE(bytes_of(*copy) == bytes_of(*shard)) << order;
  }
}

// A million rows that were pushed, read and erased at random, against a map.
TEST(SparseShardTest, IsAMapOfRows) {
  for (const size_t width : {1, 3, 16, 17, 100}) {
    SparseShardConfig config = Config(width, OptimizerKind::kSgd);
    config.learning_rate = {.base_rate = 1};
    const auto shard = Open(config);
    std::map<uint64_t, Floats> model;
    const auto row_of = [&](uint64_t key) {
      const auto found = model.find(key);
      if (found != model.end()) return found->second;
      Floats first(width);
      Initialize(config.initializer, key * width, first);
      return first;
    };
    Random random(width);
    // The key whose place is 0 among them.
    const uint64_t edges[] = {0, 1, uint64_t{1} << 63, ~uint64_t{0}, UnmixBits(0)};
    for (int round = 0; round < 200; ++round) {
      Keys keys = Draw(random, 1000 / width + 100, [](Random& r) { return r.Below(20'000); });
      for (const uint64_t edge : edges) {
        if (random.Below(2) == 0) keys.push_back(edge);
      }
      std::sort(keys.begin(), keys.end());
      keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
      const Floats gradient = RandomFloats(random, keys.size() * width);
      ASSERT_TRUE(shard->Apply(keys, gradient, 1).ok());
      for (size_t i = 0; i < keys.size(); ++i) {
        Floats row = row_of(keys[i]);
        for (size_t c = 0; c < width; ++c) row[c] -= gradient[i * width + c];
        model[keys[i]] = row;
      }
      for (int i = 0; i < 50; ++i) {
        const uint64_t victim = i < 5 ? edges[i] : random.Below(20'000);
        ASSERT_EQ(shard->Erase(victim), model.erase(victim) == 1);
      }
      ASSERT_EQ(shard->rows(), model.size());
      const Keys wanted = Draw(random, 300, [](Random& r) { return r.Below(25'000); });
      Floats expected;
      for (const uint64_t key : wanted) {
        const Floats row = row_of(key);
        expected.insert(expected.end(), row.begin(), row.end());
      }
      ASSERT_EQ(ReadRows(*shard, wanted), expected) << width << " " << round;
    }
  }
}

TEST(SparseShardTest, ARowThatWasErasedBeginsAgain) {
  const auto shard = Open(Config(4, OptimizerKind::kAdam));
  const Floats first = ReadRows(*shard, Keys{3});
  ASSERT_TRUE(shard->Apply(Keys{3}, Floats(4, 1.0f), 1).ok());
  const Floats once = ReadRows(*shard, Keys{3});
  ASSERT_TRUE(shard->Erase(3));
  EXPECT_EQ(ReadRows(*shard, Keys{3}), first);
  const auto fresh = Open(Config(4, OptimizerKind::kAdam));
  fresh->RestoreCounts(shard->version(), shard->samples());
  ASSERT_TRUE(shard->Apply(Keys{3}, Floats(4, 1.0f), 1).ok());
  ASSERT_TRUE(fresh->Apply(Keys{3}, Floats(4, 1.0f), 1).ok());
  EXPECT_EQ(shard->Digest(), fresh->Digest());
  EXPECT_NE(ReadRows(*shard, Keys{3}), once);  // at another rate of the warm-up
}

TEST(SparseShardTest, RowsThatAreErasedMakeRoom) {
  const auto shard = Open(Config(16));
  size_t bytes = 0;
  for (uint64_t round = 0; round < 10; ++round) {
    Keys keys;
    for (uint64_t key = 0; key < 50'000; ++key) keys.push_back(round * 25'000 + key);
    ASSERT_TRUE(shard->Apply(keys, Floats(keys.size() * 16), 1).ok());
    if (round == 1) bytes = shard->bytes();
    for (uint64_t key = 0; key < 25'000; ++key) ASSERT_TRUE(shard->Erase(round * 25'000 + key));
  }
  EXPECT_LT(shard->bytes(), bytes * 1.05);
}

TEST(SparseShardTest, AFullShardMakesNoRow) {
  SparseShardConfig config = Config(2, OptimizerKind::kSgd);
  config.rows_max = 3;
  const auto shard = Open(config);
  ASSERT_EQ(shard->Apply(Keys{3, 7}, Floats(4, 1.0f), 1).value(), 0);
  const Floats before = ReadRows(*shard, Keys{9});
  // Row 5 is the last to be made; the others have their own gradients.
  EXPECT_EQ(shard->Apply(Keys{3, 5, 7, 8, 9}, Floats{1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, 1).value(), 2);
  EXPECT_EQ(shard->rows(), 3);
  EXPECT_EQ(ReadRows(*shard, Keys{9}), before);
  config.rows_max = 10;
  const auto roomy = Open(config);
  ASSERT_TRUE(roomy->Apply(Keys{3, 7}, Floats(4, 1.0f), 1).ok());
  ASSERT_TRUE(roomy->Apply(Keys{3, 5, 7, 8, 9}, Floats{1, 1, 2, 2, 3, 3, 4, 4, 5, 5}, 1).ok());
  EXPECT_EQ(ReadRows(*shard, Keys{3, 5, 7}), ReadRows(*roomy, Keys{3, 5, 7}));
}

TEST(SparseShardTest, AShardThatWasFilledFromAnotherContinuesAlike) {
  for (const OptimizerKind kind :
       {OptimizerKind::kSgd, OptimizerKind::kRowwiseAdagrad, OptimizerKind::kAdam}) {
    const auto shard = Open(Config(5, kind));
    Random random(4);
    for (int update = 0; update < 30; ++update) {
      const Keys keys = Draw(random, 2000, [](Random& r) { return r.Below(20'000); });
      ASSERT_TRUE(shard->Apply(keys, RandomFloats(random, keys.size() * 5), 3).ok());
    }
    const auto copy = Open(Config(5, kind));
    Fill(*copy, *shard);
    EXPECT_EQ(copy->rows(), shard->rows());
    EXPECT_EQ(copy->Digest(), shard->Digest());
    for (int update = 0; update < 10; ++update) {
      const Keys keys = Draw(random, 2000, [](Random& r) { return r.Below(30'000); });
      const Floats gradient = RandomFloats(random, keys.size() * 5);
      ASSERT_TRUE(shard->Apply(keys, gradient, 3).ok());
      ASSERT_NE(copy->Digest(), shard->Digest());
      ASSERT_TRUE(copy->Apply(keys, gradient, 3).ok());
      ASSERT_EQ(copy->Digest(), shard->Digest());
    }
  }
}

TEST(SparseShardTest, PartDigestsCoverAllRows) {
  const auto shard = Open(Config(2));
  Random random(9);
  for (const size_t keys : {size_t{100}, size_t{3'000}, size_t{30'000}}) {
    const Keys drawn = Draw(random, keys, [](Random& r) { return r.Next(); });
    ASSERT_TRUE(shard->Apply(drawn, RandomFloats(random, drawn.size() * 2), 1).ok());
    uint64_t parts = 1;
    while (shard->PartDigest(parts) != shard->PartDigest(0)) parts *= 2;
    uint64_t sum = 0;
    for (uint64_t part = 0; part < parts; ++part) sum += shard->PartDigest(7 * parts + part);
    EXPECT_EQ(sum, shard->Digest()) << keys;
    EXPECT_EQ(parts > 1, keys > 100);
  }
}

TEST(SparseShardTest, RestoredValuesHaveNoState) {
  const auto shard = Open(Config(3, OptimizerKind::kAdam));
  ASSERT_TRUE(shard->Apply(Keys{3, 7}, Floats(6, 1.0f), 1).ok());
  const RowPiece piece = shard->Cut()->Next(1 << 20);
  const auto copy = Open(Config(3, OptimizerKind::kAdam));
  ASSERT_EQ(copy->RestoreRows(piece, SparseShard::Restored::kValues).value(), 2);
  EXPECT_EQ(ReadRows(*copy, Keys{3, 7}), ReadRows(*shard, Keys{3, 7}));
  copy->ForEachRow([](const SparseRow& row) {
    EXPECT_EQ(row.updates, 0);
    EXPECT_EQ(row.stamp, 0);
    for (size_t slot = 0; slot < 2; ++slot) EXPECT_EQ(row.slots[slot][0], 0);
  });
}

TEST(SparseShardTest, AnUpdateWithoutKeysIsAnUpdate) {
  const auto shard = Open(Config(4));
  EXPECT_EQ(shard->Apply({}, {}, 10).value(), 0);
  EXPECT_EQ(shard->version(), 1);
  EXPECT_EQ(shard->samples(), 10);
}

TEST(SparseShardTest, WhatIsNoUpdateIsRefusedAndChangesNothing) {
  SparseShardConfig config = Config(2);
  config.first_slot = 10;
  config.slot_count = 60'000;
  const auto shard = Open(config);
  uint64_t outside = 0;
  while (shard->Holds(outside)) ++outside;
  Keys inside;
  for (uint64_t key = 0; inside.size() < 2; ++key) {
    if (shard->Holds(key)) inside.push_back(key);
  }
  const auto refusal = [&](const Keys& keys, size_t elements, uint64_t samples) {
    const absl::Status status = shard->Apply(keys, Floats(elements), samples).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  EXPECT_EQ(refusal(inside, 3, 1), "apply: the gradient has 3 elements for 2 rows of 2; push 4");
  EXPECT_NE(refusal({inside[1], inside[0]}, 4, 1).find("push keys ascending"), std::string::npos);
  EXPECT_NE(refusal({inside[0], inside[0]}, 4, 1).find("push keys ascending"), std::string::npos);
  EXPECT_NE(refusal({outside}, 2, 1).find("the shard holds 60000 slots"), std::string::npos);
  EXPECT_NE(refusal(inside, 4, 0).find("0 samples"), std::string::npos);
  EXPECT_EQ(shard->version(), 0);
  EXPECT_EQ(shard->rows(), 0);
}

TEST(SparseShardTest, AnImpossibleShardIsRefused) {
  const auto refusal = [](auto change) {
    SparseShardConfig config = Config(4);
    change(config);
    return std::string(SparseShard::Create(config).status().message());
  };
  EXPECT_NE(refusal([](auto& c) { c.width = 0; }).find("rows of 0 elements"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.width = 5000; }).find("choose 1 to 4096"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.slot_count = 0; }).find("0 slots"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.first_slot = 1; }).find("65536 slots from 1"),
            std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.rows_max = 0; }).find("at most 0 rows"), std::string::npos);
  EXPECT_NE(refusal([](auto& c) { c.optimizer.kind = OptimizerKind::kLars; }).find("lars"),
            std::string::npos);
}

}  // namespace
}  // namespace covey::server

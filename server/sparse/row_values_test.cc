// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/row_values.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/table/key_slots.h"
#include "common/tensor/codec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/sparse/sparse_cut.h"
#include "server/sparse/sparse_shard.h"
#include "server/table/initializer.h"
#include "server/testing/row_floats.h"

// Rows of 2 bytes for each element.

namespace covey::server {
namespace {

using ::testing::HasSubstr;
using Floats = std::vector<float>;
using Keys = std::vector<uint64_t>;

constexpr WireFormat kTypes[] = {WireFormat::kBfloat16, WireFormat::kFloat16};

SparseShardConfig Config(WireFormat type, size_t width,
                         OptimizerKind kind = OptimizerKind::kAdagrad) {
  return {.slot_count = kKeySlots,
          .width = width,
          .type = type,
          .initializer = {.kind = InitializerKind::kUniform, .a = -1, .b = 1, .seed = 5},
          .optimizer = {.kind = kind},
          .learning_rate = {.base_rate = 0.1}};
}

std::shared_ptr<SparseShard> Open(const SparseShardConfig& config) {
  return SparseShard::Create(config).value();
}

Floats Nearest(WireFormat type, const Floats& values) {
  std::vector<uint8_t> bytes(EncodedBytes(type, values.size()));
  Encode(type, values, bytes);
  Floats rounded(values.size());
  Decode(type, bytes, rounded);
  return rounded;
}

// Moves a shard's keys by pseudo-random gradients.
class Pushes {
 public:
  explicit Pushes(uint64_t seed) : random_(seed) {}

  void Next(std::vector<SparseShard*> shards) {
    Keys keys(40);
    for (uint64_t& key : keys) key = random_.Below(200);
    std::sort(keys.begin(), keys.end());
    keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
    const size_t width = shards[0]->width();
    Floats gradient(keys.size() * width);
    for (float& x : gradient) x = static_cast<float>(random_.Uniform() * 2 - 1);
    for (SparseShard* const shard : shards) {
      Keys own;
      Floats of_own;
      for (size_t i = 0; i < keys.size(); ++i) {
        if (!shard->Holds(keys[i])) continue;
        own.push_back(keys[i]);
        of_own.insert(of_own.end(), gradient.begin() + i * width,
                      gradient.begin() + (i + 1) * width);
      }
      ASSERT_TRUE(shard->Apply(own, of_own, 1).ok());
    }
  }

 private:
  Random random_;
};

Keys AllKeys() {
  Keys keys(200);
  for (uint64_t key = 0; key < keys.size(); ++key) keys[key] = key;
  return keys;
}

// What steps of far less than half a unit in the last place do to rows of 1, together.
double MeanAfterSteps(WireFormat type, RowValues::Rounding rounding, int steps, float step) {
  constexpr size_t kWidth = 16;
  constexpr size_t kRows = 64;
  RowValues rows(ProcessRowMemory(), {.type = type, .width = kWidth, .rounding = rounding});
  rows.Grow(kRows);
  double sum = 0;
  for (size_t row = 0; row < kRows; ++row) {
    std::fill_n(rows.NewValues(row).begin(), kWidth, 1.0f);
    rows.Store(row);
    for (int i = 1; i <= steps; ++i) {
      float* const values = rows.Open(row, 3);
      for (size_t c = 0; c < kWidth; ++c) values[c] -= step;
      rows.Close(row, 3, row * 1'000, i);
    }
    const float* const values = rows.Open(row, 0);
    for (size_t c = 0; c < kWidth; ++c) sum += values[c];
  }
  return sum / (kRows * kWidth);
}

TEST(RowValuesTest, ManySmallStepsGoAsFarAsInFloat32) {
  constexpr float kStep = 1e-4f;
  const double exact =
      MeanAfterSteps(WireFormat::kFloat32, RowValues::Rounding::kAtRandom, 1'000, kStep);
  EXPECT_NEAR(exact, 0.9, 1e-4);
  for (const WireFormat type : kTypes) {
    EXPECT_NEAR(MeanAfterSteps(type, RowValues::Rounding::kAtRandom, 1'000, kStep), exact, 3e-3)
        << WireFormatName(type);
    // The reason for it.
    EXPECT_EQ(MeanAfterSteps(type, RowValues::Rounding::kNearest, 1'000, kStep), 1)
        << WireFormatName(type);
  }
}

TEST(RowValuesTest, UpdatesOfAShardGoAsFarAsInFloat32) {
  constexpr size_t kWidth = 16;
  for (const WireFormat type : kTypes) {
    for (const OptimizerKind kind : {OptimizerKind::kSgd, OptimizerKind::kAdagrad,
                                     OptimizerKind::kAdam, OptimizerKind::kRowwiseAdagrad}) {
      double mean[2];
      for (const bool is_small : {false, true}) {
        SparseShardConfig config = Config(is_small ? type : WireFormat::kFloat32, kWidth, kind);
        config.initializer = {.kind = InitializerKind::kConstant, .a = 1};
        config.learning_rate = {.base_rate = 1e-4};
        const auto shard = Open(config);
        const Keys keys = AllKeys();
        const Floats gradient(keys.size() * kWidth, 1.0f);
        for (int i = 0; i < 500; ++i) ASSERT_TRUE(shard->Apply(keys, gradient, 1).ok());
        double sum = 0;
        for (const float value : ReadRows(*shard, keys)) sum += value;
        mean[is_small] = sum / static_cast<double>(gradient.size());
      }
      EXPECT_NEAR(mean[1], mean[0], 1.5e-3) << WireFormatName(type) << OptimizerName(kind);
      EXPECT_LT(mean[0], 0.999);
    }
  }
}

TEST(RowValuesTest, FirstValuesAreRoundedToNearest) {
  for (const WireFormat type : kTypes) {
    for (const size_t width : {1, 3, 16}) {
      const auto shard = Open(Config(type, width, OptimizerKind::kSgd));
      Floats first(width);
      Initialize(shard->config().initializer, 7 * width, first);
      EXPECT_EQ(ReadRows(*shard, Keys{7}), Nearest(type, first));
      // Made by an update that does not move it, it is the same row.
      ASSERT_TRUE(shard->Apply(Keys{7}, Floats(width, 0.0f), 1).ok());
      EXPECT_EQ(shard->rows(), 1);
      EXPECT_EQ(ReadRows(*shard, Keys{7, 8, 7}).size(), 3 * width);
      EXPECT_EQ(ReadRows(*shard, Keys{7}), Nearest(type, first));
    }
  }
}

// The same pushes give the same bits: on a replica, in any cut into shards, and on a shard that was
// filled in between from another one's pieces.
TEST(RowValuesTest, ReplicasAndOtherCutsHaveTheSameBits) {
  for (const WireFormat type : kTypes) {
    for (const size_t width : {1, 3, 16, 17}) {
      SparseShardConfig config = Config(type, width);
      const auto whole = Open(config);
      const auto replica = Open(config);
      config.slot_count = 20'000;
      const auto low = Open(config);
      config.first_slot = 20'000;
      config.slot_count = kKeySlots - 20'000;
      const auto high = Open(config);
      Pushes pushes(width);
      for (int i = 0; i < 50; ++i) {
        pushes.Next({whole.get(), replica.get(), low.get(), high.get()});
      }
      const auto joined = whole->Empty();
      const auto cut = whole->Cut();
      joined->RestoreCounts(cut->version(), cut->samples());
      pushes.Next({whole.get(), replica.get(), low.get(), high.get()});
      for (RowPiece piece = cut->Next(500); piece.rows > 0; piece = cut->Next(500)) {
        ASSERT_EQ(joined->RestoreRows(piece).value(), piece.rows);
      }
      // What the cut holds is of before the last push.
      Pushes again(width);
      const auto earlier = Open(Config(type, width));
      for (int i = 0; i < 50; ++i) again.Next({earlier.get()});
      ASSERT_EQ(joined->Digest(), earlier->Digest());
      again.Next({joined.get()});
      for (int i = 0; i < 20; ++i) {
        pushes.Next({whole.get(), replica.get(), low.get(), high.get()});
        again.Next({joined.get()});
      }
      ASSERT_EQ(whole->Digest(), replica->Digest()) << width;
      ASSERT_EQ(whole->Digest(), joined->Digest()) << width;
      ASSERT_EQ(whole->Digest(), low->Digest() + high->Digest()) << width;
    }
  }
}

// Rows of one seed, key and history are rounded alike; others are not.
TEST(RowValuesTest, TheRandomBitsAreOfTheRow) {
  constexpr size_t kWidth = 64;
  const auto after = [&](uint64_t seed, uint64_t key, int updates) {
    RowValues rows(ProcessRowMemory(),
                   {.type = WireFormat::kBfloat16, .width = kWidth, .seed = seed});
    rows.Grow(1);
    std::fill_n(rows.NewValues(0).begin(), kWidth, 1.0f);
    rows.Store(0);
    float* const values = rows.Open(0, 0);
    for (size_t c = 0; c < kWidth; ++c) values[c] += 0x1p-8f;
    rows.Close(0, 0, key, updates);
    const float* const stored = rows.Open(0, 0);
    return Floats(stored, stored + kWidth);
  };
  EXPECT_EQ(after(1, 2, 3), after(1, 2, 3));
  EXPECT_NE(after(1, 2, 3), after(4, 2, 3));
  EXPECT_NE(after(1, 2, 3), after(1, 4, 3));
  EXPECT_NE(after(1, 2, 3), after(1, 2, 4));
}

// Adagrad's state depends on gradients only, and those are float32.
TEST(RowValuesTest, TheOptimizersStateIsThatOfFloat32) {
  const auto exact = Open(Config(WireFormat::kFloat32, 3));
  const auto rounded = Open(Config(WireFormat::kBfloat16, 3));
  Pushes pushes(1);
  for (int i = 0; i < 30; ++i) pushes.Next({exact.get(), rounded.get()});
  std::vector<Floats> states[2];
  for (const bool is_rounded : {false, true}) {
    (is_rounded ? rounded : exact)->ForEachRow([&](const SparseRow& row) {
      states[is_rounded].emplace_back(row.slots[0], row.slots[0] + 3);
    });
  }
  EXPECT_EQ(states[0], states[1]);
}

// Its values follow from its state, in float32, so that nearest loses nothing.
TEST(RowValuesTest, FtrlRoundsToNearest) {
  for (const WireFormat type : kTypes) {
    SparseShardConfig config = Config(type, 16, OptimizerKind::kFtrl);
    config.initializer = {};
    config.optimizer.l1 = 0.1;
    const auto shard = Open(config);
    Pushes pushes(3);
    for (int i = 0; i < 40; ++i) pushes.Next({shard.get()});
    int zeros = 0;
    shard->ForEachRow([&](const SparseRow& row) {
      const Floats values = FloatsOf(row, shard->layout());
      Floats exact(16);
      for (size_t c = 0; c < 16; ++c) {
        const float z = row.slots[0][c];
        const float rest = std::copysign(std::max(std::fabs(z) - 0.1f, 0.0f), z);
        const float scale =
            (static_cast<float>(config.optimizer.ftrl_beta) + std::sqrt(row.slots[1][c])) / 0.1f;
        exact[c] = rest == 0 ? 0 : -rest / scale;
        zeros += values[c] == 0;
      }
      EXPECT_EQ(values, Nearest(type, exact));
    });
    EXPECT_GT(zeros, 0);
  }
}

TEST(RowValuesTest, BeyondTheLargestHalfLiesInfinity) {
  SparseShardConfig config = Config(WireFormat::kFloat16, 2, OptimizerKind::kSgd);
  config.initializer = {.kind = InitializerKind::kConstant, .a = 64'000};
  config.learning_rate = {.base_rate = 1};
  const auto shard = Open(config);
  ASSERT_TRUE(shard->Apply(Keys{1}, Floats{-2'000, 1'024}, 1).ok());
  EXPECT_EQ(ReadRows(*shard, Keys{1}), Floats({std::numeric_limits<float>::infinity(), 62'976}));
  // It does not come back, as in float32.
  ASSERT_TRUE(shard->Apply(Keys{1}, Floats{1'000, 1'000}, 1).ok());
  EXPECT_FALSE(std::isfinite(ReadRows(*shard, Keys{1})[0]));
  config.type = WireFormat::kBfloat16;
  const auto wider = Open(config);
  ASSERT_TRUE(wider->Apply(Keys{1}, Floats{-2'000, 0}, 1).ok());
  EXPECT_NEAR(ReadRows(*wider, Keys{1})[0], 66'000, 512);
}

TEST(RowValuesTest, RowsTakeHalfOfTheMemory) {
  double bytes[2];
  for (const bool is_small : {false, true}) {
    const auto shard = Open(
        Config(is_small ? WireFormat::kBfloat16 : WireFormat::kFloat32, 16, OptimizerKind::kSgd));
    Keys keys((1 << 15) - 2);  // so that memory is full
    for (uint64_t key = 0; key < keys.size(); ++key) keys[key] = key;
    ASSERT_TRUE(shard->Apply(keys, Floats(keys.size() * 16, 0.0f), 1).ok());
    bytes[is_small] = static_cast<double>(shard->bytes()) / static_cast<double>(shard->rows());
    EXPECT_EQ(shard->layout().row_bytes(), is_small ? 16 + 32 : 16 + 64);
  }
  EXPECT_NEAR(bytes[0] - bytes[1], 32, 0.5);
}

// 1 or 3 halves end within a word.
TEST(RowValuesTest, RowsOfOddWidthTravelWithoutWhatFillsTheirLastWord) {
  const auto shard = Open(Config(WireFormat::kFloat16, 3));
  EXPECT_EQ(shard->layout().value_bytes(), 6);
  EXPECT_EQ(shard->layout().stored_value_bytes(), 8);
  Pushes pushes(2);
  for (int i = 0; i < 20; ++i) pushes.Next({shard.get()});
  const ScannedRows scanned = shard->Scan({.first = 0, .bytes_max = 1 << 20});
  EXPECT_EQ(scanned.values.size(), shard->rows() * 6);
  const std::span<const uint64_t> keys = scanned.keys.As<uint64_t>();
  Floats decoded(keys.size() * 3);
  DecodeRows(WireFormat::kFloat16, 3, scanned.values.bytes(), decoded);
  EXPECT_EQ(decoded, ReadRows(*shard, keys));
}

TEST(RowValuesTest, TheNormIsThatOfTheStoredValues) {
  for (const size_t width : {3, 300}) {
    SparseShardConfig config = Config(WireFormat::kBfloat16, width, OptimizerKind::kSgd);
    const auto shard = Open(config);
    ASSERT_TRUE(shard->Apply(Keys{4}, Floats(width, 0.25f), 1).ok());
    double squares = 0;
    for (const float value : ReadRows(*shard, Keys{4})) squares += double{value} * value;
    shard->VisitEntries({.last = ~uint64_t{0}}, [&](const IndexEntry& entry, uint64_t) {
      EXPECT_EQ(std::bit_cast<float>(shard->ScoreOf(entry, EvictBy::kNorm)),
                static_cast<float>(squares));
    });
  }
}

TEST(RowValuesTest, PiecesOfAnotherSizeAndOtherTypesAreRefused) {
  const auto exact = Open(Config(WireFormat::kFloat32, 4));
  const auto small = Open(Config(WireFormat::kBfloat16, 4));
  Pushes pushes(1);
  pushes.Next({exact.get()});
  const RowPiece piece = exact->Cut()->Next(1 << 20);
  EXPECT_THAT(std::string(small->RestoreRows(piece).status().message()),
              HasSubstr("it is of another table"));
  EXPECT_THAT(
      std::string(SparseShard::Create(Config(WireFormat::kInt8Block, 4)).status().message()),
      HasSubstr("choose float32, float16 or bfloat16"));
}

}  // namespace
}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#include "client/row_residuals.h"

#include <cmath>
#include <map>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Keys = std::vector<uint64_t>;
using Floats = std::vector<float>;

constexpr FilterRule kBelowOne = {.kind = FilterRule::Kind::kKkt, .threshold = 1};
constexpr FilterRule kNoneWaits = {.kind = FilterRule::Kind::kKkt, .threshold = 0};

class RowResidualsTest : public ::testing::Test {
 protected:
  // Pushes gradients of rows of one column, which are zeros unless given.
  void Push(RowResiduals& residuals, const Keys& keys, const Floats& gradients,
            uint64_t samples = 1, Floats rows = {}) {
    rows.resize(keys.size());
    residuals.Select({.keys = keys, .rows = rows, .gradients = gradients, .samples = samples},
                     out_);
  }

  KeyedRows out_;
};

TEST_F(RowResidualsTest, GradientsWaitUntilTheirSumIsLarge) {
  RowResiduals residuals(1, kBelowOne, {.rows = 10, .pieces = 1});
  Push(residuals, {1, 2, 3}, {0.5f, -2, 0.25f});
  EXPECT_THAT(out_.keys, ElementsAre(2));
  EXPECT_THAT(out_.rows, ElementsAre(-2));
  Push(residuals, {1, 3}, {0.25f, -0.5f});
  EXPECT_THAT(out_.keys, IsEmpty());
  Push(residuals, {1, 3}, {0.375f, -0.25f});
  EXPECT_THAT(out_.keys, ElementsAre(1));
  EXPECT_THAT(out_.rows, ElementsAre(1.125f));
  EXPECT_EQ(residuals.size(), 1);
  // The row is no longer zero, so its residual goes with the next gradient.
  Push(residuals, {3}, {0.25f}, 1, {0.125f});
  EXPECT_THAT(out_.keys, ElementsAre(3));
  EXPECT_THAT(out_.rows, ElementsAre(-0.25f));
  EXPECT_EQ(residuals.size(), 0);
  const RowResiduals::Counts& counts = residuals.counts();
  EXPECT_EQ(counts.pushed, 3);
  EXPECT_EQ(counts.zero_pushed, 2);
  EXPECT_EQ(counts.held_back, 5);
  EXPECT_EQ(counts.zero_held_back, 5);
  EXPECT_EQ(counts.pushed_later, 0);
}

TEST_F(RowResidualsTest, AResidualKeepsTheMeanOfItsGradients) {
  RowResiduals residuals(1, kBelowOne, {.rows = 10, .pieces = 1});
  Push(residuals, {1}, {192}, 256);  // 0.75
  EXPECT_THAT(out_.keys, IsEmpty());
  // 0.75 + 32 / 64, of 64 samples.
  Push(residuals, {1}, {32}, 64);
  EXPECT_THAT(out_.rows, ElementsAre(80));
  // A gradient that does not wait keeps its bits: 1/3 of it times 3 would not.
  const float odd = 3.0000012f;
  Push(residuals, {1}, {odd}, 3, {1});
  EXPECT_THAT(out_.rows, ElementsAre(odd));
}

TEST_F(RowResidualsTest, AResidualLeavesInPiecesWithTheSquaresOfItsGradients) {
  RowResiduals residuals(1, kBelowOne, {.rows = 10, .pieces = 4});
  Push(residuals, {5}, {0.375f});
  Push(residuals, {5}, {0.375f});
  // 1.125: its square is 3 times 3 * 0.375^2.
  Push(residuals, {5}, {0.375f});
  EXPECT_THAT(out_.keys, ElementsAre(5));
  EXPECT_THAT(out_.rows, ElementsAre(0.375f));
  Push(residuals, {7}, {2});
  EXPECT_THAT(out_.keys, ElementsAre(7, 5));
  EXPECT_THAT(out_.rows, ElementsAre(2, 0.375f));
  Push(residuals, {}, {});
  EXPECT_THAT(out_.keys, ElementsAre(5));
  EXPECT_THAT(out_.rows, ElementsAre(0.375f));
  EXPECT_EQ(residuals.size(), 0);
  EXPECT_EQ(residuals.counts().pushed, 2);
  EXPECT_EQ(residuals.counts().pushed_later, 2);
  // Of gradients with both signs the square of the sum is no larger: 0.5^2 + 0.25^2 + 1 > 0.75^2.
  Push(residuals, {5}, {0.5f});
  Push(residuals, {5}, {-0.75f});
  Push(residuals, {5}, {1}, 1, {1});
  EXPECT_THAT(out_.rows, ElementsAre(0.75f));
  EXPECT_EQ(residuals.size(), 0);
}

TEST_F(RowResidualsTest, AGradientJoinsAResidualThatLeaves) {
  RowResiduals residuals(1, kBelowOne, {.rows = 10, .pieces = 2});
  Push(residuals, {5}, {0.75f});
  Push(residuals, {5}, {0.75f});
  EXPECT_THAT(out_.rows, ElementsAre(0.75f));
  Push(residuals, {5}, {0.125f});
  EXPECT_THAT(out_.keys, ElementsAre(5));
  EXPECT_THAT(out_.rows, ElementsAre(0.875f));
  EXPECT_EQ(residuals.size(), 0);
  EXPECT_EQ(residuals.counts().pushed, 2);
  EXPECT_EQ(residuals.counts().pushed_later, 0);
}

TEST_F(RowResidualsTest, TheOldestGoWhereThereIsNoRoom) {
  RowResiduals residuals(1, kBelowOne, {.rows = 2, .pieces = 2});
  Push(residuals, {9}, {0.5f});
  Push(residuals, {4}, {0.25f}, 2);
  EXPECT_EQ(residuals.size(), 2);
  Push(residuals, {1, 3, 9}, {0.5f, 0.75f, 0.125f}, 2);
  EXPECT_THAT(out_.keys, ElementsAre(9, 4));
  EXPECT_THAT(out_.rows, ElementsAre(1.125f, 0.25f));
  EXPECT_EQ(residuals.size(), 2);
  EXPECT_EQ(residuals.counts().pushed_later, 2);
  // A residual that leaves goes as a whole.
  Push(residuals, {1}, {1.0f}, 2);
  Push(residuals, {1}, {1.0f}, 2);  // 1.25 in two pieces
  EXPECT_THAT(out_.rows, ElementsAre(1.25f));
  Push(residuals, {5}, {0.5f}, 2);
  EXPECT_EQ(residuals.size(), 2);
  EXPECT_THAT(out_.keys, ElementsAre(1));
  EXPECT_THAT(out_.rows, ElementsAre(1.25f));
}

TEST_F(RowResidualsTest, AllLeaveWhenAsked) {
  RowResiduals residuals(1, kBelowOne, {.rows = 10, .pieces = 2});
  Push(residuals, {8, 6}, {0.25f, 0.5f}, 2);
  Push(residuals, {6}, {0.5f}, 2);
  residuals.SelectAll(out_);
  EXPECT_THAT(out_.keys, ElementsAre(8, 6));
  EXPECT_THAT(out_.rows, ElementsAre(0.125f, 0.5f));
  EXPECT_EQ(residuals.size(), 0);
  EXPECT_EQ(residuals.counts().pushed_later, 2);
  // Also what has begun to leave.
  Push(residuals, {3}, {0.75f});
  Push(residuals, {3}, {0.75f});
  EXPECT_THAT(out_.rows, ElementsAre(0.75f));
  residuals.SelectAll(out_);
  EXPECT_THAT(out_.rows, ElementsAre(0.75f));
  Push(residuals, {}, {});
  EXPECT_THAT(out_.keys, IsEmpty());
  residuals.SelectAll(out_);
  EXPECT_THAT(out_.keys, IsEmpty());
}

TEST_F(RowResidualsTest, TheThresholdFallsWithThePushes) {
  RowResiduals residuals(2, {.kind = FilterRule::Kind::kSignificance, .threshold = 0.5},
                         {.rows = 10, .pieces = 1});
  const auto push = [&](const Floats& gradient) {
    residuals.Select({.keys = Keys{1}, .rows = Floats{3, 4}, .gradients = gradient}, out_);
    return !out_.keys.empty();
  };
  EXPECT_FALSE(push({1.5f, 0}));  // of 2.5
  EXPECT_TRUE(push({0, 1}));      // 1.80 of 1.77
  EXPECT_THAT(out_.rows, ElementsAre(1.5f, 1));
  EXPECT_FALSE(push({0, 1}));    // of 1.44
  EXPECT_TRUE(push({0, 0.5f}));  // of 1.25
  EXPECT_EQ(residuals.counts().zero_held_back, 0);
}

TEST_F(RowResidualsTest, NothingWaitsAtAThresholdOfZero) {
  RowResiduals residuals(1, kNoneWaits, {.rows = 1, .pieces = 4});
  Push(residuals, {1, 2, 3}, {0, 0.5f, -0.0f});
  EXPECT_THAT(out_.keys, ElementsAre(1, 2, 3));
  EXPECT_EQ(residuals.counts().held_back, 0);
}

// Whatever waits, goes in pieces or makes room: the sums of all gradients arrive, and two filters
// with the same pushes send the same.
TEST_F(RowResidualsTest, EveryGradientArrivesOnce) {
  constexpr size_t kWidth = 3;
  for (const uint64_t seed : {1, 2, 3}) {
    Random random(seed);
    const RowResiduals::Limits limits = {.rows = 1 + random.Below(20),
                                         .pieces = static_cast<uint32_t>(1 + random.Below(5))};
    RowResiduals residuals(kWidth, kBelowOne, limits);
    RowResiduals twin(kWidth, kBelowOne, limits);
    std::map<uint64_t, std::vector<double>> given, arrived;
    size_t rows_arrived = 0;
    const auto take = [&](double samples) {
      ASSERT_EQ(out_.rows.size(), out_.keys.size() * kWidth);
      rows_arrived += out_.keys.size();
      for (size_t i = 0; i < out_.rows.size(); ++i) {
        arrived[out_.keys[i / kWidth]].resize(kWidth);
        arrived[out_.keys[i / kWidth]][i % kWidth] += out_.rows[i] / samples;
      }
    };
    for (int push = 0; push < 500; ++push) {
      Keys keys;
      Floats rows, gradients;
      const uint64_t samples = 1 + random.Below(3);
      for (uint64_t key = 0; key < 50; ++key) {
        if (random.Below(4) > 0) continue;
        keys.push_back(key);
        const bool is_zero = random.Below(10) > 0;
        given[key].resize(kWidth);
        for (size_t c = 0; c < kWidth; ++c) {
          // Sixteenths, of which all sums and halves are exact; thirds are nearly so.
          gradients.push_back(static_cast<float>(random.Below(17)) / 16 - 0.5f);
          rows.push_back(is_zero ? 0.0f : 1.0f);
          given[key][c] += gradients.back() / static_cast<double>(samples);
        }
      }
      KeyedRows of_twin;
      const RowResiduals::Batch batch = {
          .keys = keys, .rows = rows, .gradients = gradients, .samples = samples};
      twin.Select(batch, of_twin);
      residuals.Select(batch, out_);
      ASSERT_EQ(out_.keys, of_twin.keys);
      ASSERT_EQ(out_.rows, of_twin.rows);
      ASSERT_LE(residuals.size(), limits.rows);
      take(static_cast<double>(samples));
    }
    residuals.SelectAll(out_);
    take(1);
    EXPECT_EQ(residuals.size(), 0);
    for (const auto& [key, sums] : given) {
      for (size_t c = 0; c < kWidth; ++c) EXPECT_NEAR(arrived[key][c], sums[c], 1e-3) << key;
    }
    const RowResiduals::Counts& counts = residuals.counts();
    EXPECT_EQ(rows_arrived, counts.pushed + counts.pushed_later);
    EXPECT_GT(counts.held_back, counts.pushed_later / 5);
  }
}

}  // namespace
}  // namespace covey::client

// SPDX-License-Identifier: Apache-2.0
#include "server/sparse/row_sums.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/kernels.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

using Floats = std::vector<float>;
using Keys = std::vector<uint64_t>;

TEST(RowSumsTest, AddsByKeyInTheOrderOfTheGradients) {
  const Keys first = {1, 5}, second = {5, 9}, third = {0, 5};
  // (1 + 1e8) - 1e8 is 0 in single precision.
  const Floats of_first = {1, 1, 1, 2}, of_second = {1e8f, 3, 4, 4}, of_third = {7, 7, -1e8f, 5};
  const std::vector<KeyedRows> gradients = {
      {first, of_first, 1}, {second, of_second, 1}, {third, of_third, 1}};
  RowSums sums{.keys = {77}, .rows = {77}, .samples = {77}};
  SumByKey(gradients, 2, sums);
  EXPECT_EQ(sums.keys, (Keys{0, 1, 5, 9}));
  EXPECT_EQ(sums.rows, (Floats{7, 7, 1, 1, 0, 10, 4, 4}));
}

TEST(RowSumsTest, GradientsWithoutKeysAddNothing) {
  RowSums sums{.keys = {1}, .rows = {1}, .samples = {1}};
  SumByKey({}, 3, sums);
  EXPECT_TRUE(sums.keys.empty() && sums.rows.empty() && sums.samples.empty());
  const Keys one = {4};
  const Floats of_one = {1, 2, 3};
  const std::vector<KeyedRows> gradients = {{}, {one, of_one, 1}, {}};
  SumByKey(gradients, 3, sums);
  EXPECT_EQ(sums.keys, one);
  EXPECT_EQ(sums.rows, of_one);
}

TEST(RowSumsTest, ARowStandsForTheGradientsThatDoNotHoldIt) {
  const Keys first = {1, 5}, second = {5, 9};
  const Floats of_first = {3, 0.1f}, of_second = {0.2f, 8};
  RowSums sums;
  SumByKey(std::vector<KeyedRows>{{first, of_first, 3}, {second, of_second, 4}, {{}, {}, 5}}, 1,
           sums);
  EXPECT_EQ(sums.samples, (Keys{3, 7, 4}));
  const float of_both = 0.1f + 0.2f;
  StandForAll(12, 1, sums);
  EXPECT_EQ(sums.rows, (Floats{12, of_both * static_cast<float>(12.0 / 7), 24}));
  // Nothing is rounded where all hold a row.
  SumByKey(std::vector<KeyedRows>{{first, of_first, 3}, {first, of_first, 4}}, 1, sums);
  StandForAll(7, 1, sums);
  EXPECT_EQ(sums.rows, (Floats{6, 0.1f + 0.1f}));
}

// The bits of the same gradients as dense arrays.
TEST(RowSumsTest, HasTheBitsOfDenseSums) {
  constexpr size_t kRows = 400;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const size_t width = 1 + random.Below(20);
    std::vector<Keys> keys(1 + random.Below(12));
    std::vector<Floats> rows(keys.size());
    std::vector<KeyedRows> gradients;
    Floats dense(kRows * width, 0.0f);
    std::vector<bool> is_held(kRows);
    for (size_t i = 0; i < keys.size(); ++i) {
      Floats whole(kRows * width, 0.0f);
      const double share = random.Uniform();
      for (uint64_t key = 0; key < kRows; ++key) {
        if (!random.Chance(share)) continue;
        is_held[key] = true;
        keys[i].push_back(key);
        for (size_t c = 0; c < width; ++c) {
          rows[i].push_back(static_cast<float>(random.Uniform() - 0.5));
          whole[key * width + c] = rows[i].back();
        }
      }
      gradients.push_back({.keys = keys[i], .rows = rows[i]});
      AddInto(dense, whole);
    }
    RowSums sums;
    SumByKey(gradients, width, sums);
    const Keys& all = sums.keys;
    ASSERT_EQ(all.size(), std::count(is_held.begin(), is_held.end(), true));
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_TRUE(i == 0 || all[i] > all[i - 1]);
      for (size_t c = 0; c < width; ++c) {
        ASSERT_EQ(sums.rows[i * width + c], dense[all[i] * width + c]) << seed;
      }
    }
  }
}

}  // namespace
}  // namespace covey::server

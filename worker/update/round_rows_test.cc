// SPDX-License-Identifier: Apache-2.0
#include "worker/update/round_rows.h"

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Floats = std::vector<float>;
using Keys = std::vector<uint64_t>;

RoundRows Make(OptimizerKind kind, size_t rows_max = 100, size_t width = 2) {
  return *RoundRows::Create({.optimizer = {.kind = kind},
                             .learning_rate = {.base_rate = 0.5},
                             .width = width,
                             .rows_max = rows_max});
}

Floats Row(const RoundRows& rows, uint64_t key) {
  const std::span<const float> row = rows.Find(key);
  return {row.begin(), row.end()};
}

Floats Change(const RoundRows& rows, uint64_t key) {
  Floats change(2);
  rows.ChangeOf(key, change);
  return change;
}

Keys Missing(const RoundRows& rows, const Keys& keys) {
  Keys missing;
  rows.FindMissing(keys, missing);
  return missing;
}

TEST(RoundRows, AChangeIsStartMinusNowTimesTheSamplesOfTheRound) {
  RoundRows rows = Make(OptimizerKind::kSgd);
  EXPECT_THAT(Missing(rows, {7, 3}), ElementsAre(7, 3));
  rows.Begin(Keys{3, 7, 9}, Floats{1, 2, 3, 4, 5, 6});
  EXPECT_THAT(Missing(rows, {7, 4}), ElementsAre(4));
  ASSERT_TRUE(rows.Step(Keys{7, 3}, Floats{2, 4, 8, 8}, 4).ok());
  ASSERT_TRUE(rows.Step(Keys{7}, Floats{1, 0}, 1).ok());
  EXPECT_THAT(Row(rows, 7), ElementsAre(3 - 0.25f - 0.5f, 4 - 0.5f));
  EXPECT_THAT(rows.Touched(), ElementsAre(7, 3));
  EXPECT_EQ(rows.samples(), 5u);
  EXPECT_THAT(Change(rows, 7), ElementsAre(3.75f, 2.5f));
  EXPECT_THAT(Change(rows, 3), ElementsAre(5, 5));
  rows.NextRound();
  EXPECT_TRUE(rows.Touched().empty());
  EXPECT_EQ(rows.samples(), 0u);
  EXPECT_THAT(Missing(rows, {7}), ElementsAre(7));
}

// So that rounds of one step are steps of the inner optimizer.
TEST(RoundRows, TheInnerStateOutlivesTheRound) {
  for (const OptimizerKind kind :
       {OptimizerKind::kAdagrad, OptimizerKind::kRowwiseAdagrad, OptimizerKind::kAdam}) {
    RoundRows in_one = Make(kind);
    RoundRows in_many = Make(kind);
    in_one.Begin(Keys{3, 7}, Floats{1, 2, 3, 4});
    Floats values = {1, 2, 3, 4};
    for (int step = 0; step < 5; ++step) {
      in_many.Begin(Keys{3, 7}, values);
      const Floats gradient = {1, -2, 3, 0.5f};
      ASSERT_TRUE(in_one.Step(Keys{3, 7}, gradient, 2).ok());
      ASSERT_TRUE(in_many.Step(Keys{3, 7}, gradient, 2).ok());
      values = Row(in_many, 3);
      const Floats second = Row(in_many, 7);
      values.insert(values.end(), second.begin(), second.end());
      in_many.NextRound();
    }
    EXPECT_THAT(Row(in_one, 3), ElementsAre(values[0], values[1]));
    EXPECT_THAT(Row(in_one, 7), ElementsAre(values[2], values[3]));
  }
}

TEST(RoundRows, OldRowsMakeRoomAndBeginAnewWhenTheyComeAgain) {
  RoundRows rows = Make(OptimizerKind::kAdagrad, 4);
  const auto round = [&rows](const Keys& keys) {
    rows.Begin(keys, Floats(keys.size() * 2, 0.0f));
    EXPECT_TRUE(rows.Step(keys, Floats(keys.size() * 2, 1.0f), 1).ok());
    const float moved = Row(rows, keys[0])[0];
    rows.NextRound();
    return moved;
  };
  // The first step of Adagrad moves by the rate, the second one by less.
  EXPECT_NEAR(round({1, 2}), -0.5, 1e-6);
  EXPECT_NEAR(round({3, 4}), -0.5, 1e-6);
  // 2 is in this round; of the others the oldest go, which are 1 and 3.
  EXPECT_NEAR(round({2, 5}), -0.5 / std::sqrt(2), 1e-6);
  EXPECT_LE(rows.size(), 4u);
  EXPECT_NEAR(round({4}), -0.5 / std::sqrt(2), 1e-6);
  EXPECT_NEAR(round({1}), -0.5, 1e-6);
}

TEST(RoundRows, ARoundHasALimit) {
  RoundRows rows = Make(OptimizerKind::kSgd, 3);
  rows.Begin(Keys{1, 2}, Floats(4, 0.0f));
  EXPECT_TRUE(rows.CheckRoom(1).ok());
  const absl::Status status = rows.CheckRoom(2);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("the round has 2 rows, the batch 2 others, and 3 is the most (rows_max)"));
  rows.NextRound();
  EXPECT_TRUE(rows.CheckRoom(3).ok());
}

TEST(RoundRows, WhatIsNotFiniteIsNamedAndChangesNothing) {
  RoundRows rows = Make(OptimizerKind::kSgd);
  rows.Begin(Keys{1, 2}, Floats(4, 0.0f));
  const absl::Status status = rows.Step(Keys{1, 2}, Floats{1, 1, 1, NAN}, 1);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("nan at column 1 of key 2"));
  EXPECT_THAT(Row(rows, 1), ElementsAre(0, 0));
  EXPECT_EQ(rows.samples(), 0u);
}

// Against a plain map, with many rounds of random keys and little room.
TEST(RoundRows, HoldsEachRowUnderItsKey) {
  Random random(3);
  RoundRows rows = Make(OptimizerKind::kSgd, 24);
  std::map<uint64_t, Floats> servers;
  for (int round = 0; round < 300; ++round) {
    std::map<uint64_t, Floats> expected;
    for (uint64_t step = 0; step < 1 + random.Below(4); ++step) {
      Keys keys;
      for (uint64_t key = 0; key < 40; ++key) {
        if (random.Chance(0.1) && keys.size() < 6) keys.push_back(key);
      }
      const Keys missing = Missing(rows, keys);
      Floats read;
      for (const uint64_t key : missing) {
        Floats& row = servers.try_emplace(key, 2, 0.0f).first->second;
        read.insert(read.end(), row.begin(), row.end());
        expected[key] = row;
      }
      rows.Begin(missing, read);
      Floats sums;
      for (const uint64_t key : keys) {
        for (float& element : expected[key]) {
          sums.push_back(static_cast<float>(random.Below(9)));
          element -= 0.5f * sums.back();
        }
      }
      ASSERT_TRUE(rows.Step(keys, sums, 1).ok());
    }
    ASSERT_LE(rows.size(), 24u);
    for (const auto& [key, row] : expected) {
      ASSERT_EQ(Row(rows, key), row);
      servers[key] = row;
    }
    rows.NextRound();
  }
}

}  // namespace
}  // namespace covey::worker

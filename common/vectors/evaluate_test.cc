// SPDX-License-Identifier: Apache-2.0
#include "common/vectors/evaluate.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace covey {
namespace {

using Function = VectorFunction::Kind;
using Query = VectorQuery::Kind;
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<float> Applied(const VectorFunction& function, std::vector<float> target,
                           const std::vector<float>& source = {}) {
  ApplyFunction(function, source, target, target);
  return target;
}

TEST(EvaluateTest, Functions) {
  EXPECT_EQ(Applied({.kind = Function::kSet, .scalar = 4}, {1, 2, 3}),
            (std::vector<float>{4, 4, 4}));
  EXPECT_EQ(Applied({.kind = Function::kScale, .scalar = -2}, {1, 2, 3}),
            (std::vector<float>{-2, -4, -6}));
  EXPECT_EQ(Applied({.kind = Function::kCopy}, {1, 2, 3}, {7, 8, 9}),
            (std::vector<float>{7, 8, 9}));
  EXPECT_EQ(Applied({.kind = Function::kAxpy, .scalar = 10}, {1, 2, 3}, {7, 8, 9}),
            (std::vector<float>{71, 82, 93}));
}

// Of a table that is cut in two, which answers as if it were not.
VectorAnswer AnswerOf(const VectorQuery& query, const std::vector<float>& vector,
                      const std::vector<float>& other = {}) {
  const size_t cut = vector.size() / 2;
  const std::span<const float> all(vector);
  const std::span<const float> others(other);
  const size_t other_cut = std::min(cut, others.size());
  const std::vector<VectorAnswer> shards = {
      AnswerOfShard(query, all.first(cut), others.first(other_cut), 0),
      AnswerOfShard(query, all.subspan(cut), others.subspan(other_cut), cut)};
  return JoinAnswers(query, shards);
}

TEST(EvaluateTest, NumbersOfSeveralShards) {
  const std::vector<float> x = {3, -4, 0, 12, -0.0f};
  EXPECT_EQ(AnswerOf({.kind = Query::kDot}, x, {1, 1, 1, 2, 5}).value, 23);
  EXPECT_EQ(AnswerOf({.kind = Query::kNorm1}, x).value, 19);
  EXPECT_EQ(AnswerOf({.kind = Query::kNorm2}, x).value, 13);
  EXPECT_EQ(AnswerOf({.kind = Query::kNormMax}, x).value, 12);
  EXPECT_EQ(AnswerOf({.kind = Query::kSum}, x).value, 11);
  EXPECT_EQ(AnswerOf({.kind = Query::kMin}, x).value, -4);
  EXPECT_EQ(AnswerOf({.kind = Query::kMax}, x).value, 12);
  EXPECT_EQ(AnswerOf({.kind = Query::kNonZero}, x).value, 3);
}

TEST(EvaluateTest, TopElementsAreThoseOfLargestMagnitude) {
  const std::vector<float> x = {1, -5, 5, 0, 5, -7, 2, 5};
  const std::vector<TopElement> by_rank = {{5, -7}, {1, -5}, {2, 5}, {4, 5},
                                           {7, 5},  {6, 2},  {0, 1}, {3, 0}};
  for (uint32_t count = 0; count <= 10; ++count) {
    const size_t expected = std::min<size_t>(count, x.size());
    EXPECT_EQ(AnswerOf({.kind = Query::kTop, .count = count}, x).top,
              std::vector<TopElement>(by_rank.begin(), by_rank.begin() + expected))
        << count;
  }
  const VectorAnswer with_nan = AnswerOf({.kind = Query::kTop, .count = 2}, {1, 9, kNan});
  EXPECT_EQ(with_nan.top[0].place, 2u);
  EXPECT_EQ(with_nan.top[1], (TopElement{1, 9}));
}

}  // namespace
}  // namespace covey

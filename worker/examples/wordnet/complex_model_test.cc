// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/wordnet/complex_model.h"

#include <cmath>
#include <complex>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::wordnet {
namespace {

constexpr size_t kWidth = 6;
constexpr size_t kHalf = kWidth / 2;
constexpr size_t kCount = 3;
constexpr size_t kNegatives = 4;
constexpr Loss kLoss = {.entities = 40, .n3 = 0.07};

using Rows = std::vector<float>;

// The rows of a batch; the second answer is among the negatives.
struct Batch {
  Batch() {
    Random random(3);
    for (Rows* rows : {&heads, &relations, &answers}) Fill(*rows, kCount, random);
    Fill(negatives, kNegatives, random);
  }
  static void Fill(Rows& rows, size_t count, Random& random) {
    for (size_t i = 0; i < count * kWidth; ++i) {
      rows.push_back(static_cast<float>(random.Uniform() - 0.5));
    }
  }
  Questions questions() const {
    return {.width = kWidth,
            .heads = heads,
            .relations = relations,
            .answers = answers,
            .negatives = negatives,
            .answer_ids = answer_ids,
            .negative_ids = negative_ids};
  }

  Rows heads, relations, answers, negatives;
  std::vector<uint32_t> answer_ids = {7, 2, 9};
  std::vector<uint32_t> negative_ids = {1, 2, 3, 4};
};

std::complex<double> At(const Rows& rows, size_t row, size_t i) {
  return {rows[row * kWidth + i], rows[row * kWidth + kHalf + i]};
}

double Score(const Batch& batch, size_t question, const Rows& tails, size_t tail) {
  double score = 0;
  for (size_t i = 0; i < kHalf; ++i) {
    score += (At(batch.heads, question, i) * At(batch.relations, question, i) *
              std::conj(At(tails, tail, i)))
                 .real();
  }
  return score;
}

struct Losses {
  double cross_entropy = 0;
  double cubes = 0;
};

// As the papers define them.
Losses Reference(const Batch& batch) {
  Losses losses;
  for (size_t q = 0; q < kCount; ++q) {
    const double own = Score(batch, q, batch.answers, q);
    double sum = std::exp(own);
    for (size_t n = 0; n < kNegatives; ++n) {
      if (batch.negative_ids[n] == batch.answer_ids[q]) continue;
      sum += std::exp(Score(batch, q, batch.negatives, n)) * static_cast<double>(kLoss.entities) /
             static_cast<double>(kNegatives);
    }
    losses.cross_entropy += std::log(sum) - own;
    for (const Rows* rows : {&batch.heads, &batch.relations, &batch.answers}) {
      for (size_t i = 0; i < kHalf; ++i) losses.cubes += std::pow(std::abs(At(*rows, q, i)), 3);
    }
  }
  return losses;
}

double Total(const Batch& batch) {
  const Losses losses = Reference(batch);
  return losses.cross_entropy + kLoss.n3 * losses.cubes;
}

TEST(ComplexModelTest, HasTheGradientsOfItsLoss) {
  Batch batch;
  Rows heads(kCount * kWidth, 99), relations = heads, answers = heads;
  Rows negatives(kNegatives * kWidth, 99);
  ComplexModel model;
  // Twice, because it keeps its memory.
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(model.Compute(batch.questions(), kLoss, {heads, relations, answers, negatives}),
                Reference(batch).cross_entropy, 1e-4);
  }
  const auto expect = [&batch](Rows& rows, const Rows& gradient) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const float value = rows[i];
      constexpr float kStep = 1e-3f;
      rows[i] = value + kStep;
      const double above = Total(batch);
      rows[i] = value - kStep;
      const double below = Total(batch);
      rows[i] = value;
      EXPECT_NEAR(gradient[i], (above - below) / (2 * kStep), 2e-4) << i;
    }
  };
  expect(batch.heads, heads);
  expect(batch.relations, relations);
  expect(batch.answers, answers);
  expect(batch.negatives, negatives);
}

TEST(ComplexModelTest, ABatchWithoutQuestionsHasNoGradient) {
  Batch batch;
  Questions questions = batch.questions();
  questions.heads = questions.relations = questions.answers = {};
  questions.answer_ids = {};
  Rows negatives(kNegatives * kWidth, 99);
  EXPECT_EQ(ComplexModel().Compute(questions, kLoss, {{}, {}, {}, negatives}), 0);
  EXPECT_THAT(negatives, ::testing::Each(0.0f));
}

TEST(ComplexModelTest, GivesEachRelationTwoRows) {
  EXPECT_EQ(RelationRow(0, false), 0u);
  EXPECT_EQ(RelationRow(0, true), 1u);
  EXPECT_EQ(RelationRow(17, false), 34u);
  EXPECT_EQ(RelationRow(17, true), 35u);
}

}  // namespace
}  // namespace covey::wordnet

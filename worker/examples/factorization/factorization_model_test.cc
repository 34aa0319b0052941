// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/factorization_model.h"

#include <cmath>
#include <limits>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/examples/factorization/score_histogram.h"

namespace covey::factorization {
namespace {

using Numbers = std::vector<float>;

constexpr size_t kFactors = 3;
constexpr size_t kFeatures = 4;

struct Sample {
  Sample() {
    Random random(2);
    const auto fill = [&random](Numbers& numbers, size_t count) {
      for (size_t i = 0; i < count; ++i) {
        numbers.push_back(static_cast<float>(random.Uniform() * 2 - 1));
      }
    };
    fill(values, kFeatures);
    fill(weights, kFeatures);
    fill(factors, kFeatures * kFactors);
  }
  FeatureRows rows() const { return {.values = values, .weights = weights, .factors = factors}; }

  Numbers values, weights, factors;
};

// As the paper defines it: over all pairs.
double Reference(const Sample& sample) {
  double score = 0;
  for (size_t i = 0; i < kFeatures; ++i) {
    score += sample.weights[i] * sample.values[i];
    for (size_t j = i + 1; j < kFeatures; ++j) {
      for (size_t f = 0; f < kFactors; ++f) {
        score += double{sample.factors[i * kFactors + f]} * sample.factors[j * kFactors + f] *
                 sample.values[i] * sample.values[j];
      }
    }
  }
  return score;
}

TEST(FactorizationModelTest, ScoresAllPairs) {
  const Sample sample;
  FactorizationModel model(kFactors);
  EXPECT_NEAR(model.Score(sample.rows()), Reference(sample), 1e-5);
  EXPECT_NEAR(model.Score(sample.rows()), Reference(sample), 1e-5);
  EXPECT_EQ(model.Score({}), 0);
}

TEST(FactorizationModelTest, HasTheGradientsOfScoreAndNorm) {
  Sample sample;
  constexpr float kSlope = -0.7f, kL2 = 0.3f;
  FactorizationModel model(kFactors);
  model.Score(sample.rows());
  Numbers weights(kFeatures, 99), factors(kFeatures * kFactors, 99);
  model.Gradients(sample.rows(), kSlope, kL2, {.weights = weights, .factors = factors});
  const auto total = [&sample] {
    double squares = 0;
    for (const Numbers* rows : {&sample.weights, &sample.factors}) {
      for (const float value : *rows) squares += value * value;
    }
    return kSlope * Reference(sample) + kL2 / 2 * squares;
  };
  const auto expect = [&total](Numbers& rows, const Numbers& gradient) {
    for (size_t i = 0; i < rows.size(); ++i) {
      const float value = rows[i];
      rows[i] = value + 0.01f;
      const double above = total();
      rows[i] = value - 0.01f;
      const double below = total();
      rows[i] = value;
      EXPECT_NEAR(gradient[i], (above - below) / 0.02, 1e-3) << i;
    }
  };
  expect(sample.weights, weights);
  expect(sample.factors, factors);
}

TEST(FactorizationModelTest, IsLinearWithoutFactors) {
  Sample sample;
  sample.factors.clear();
  FactorizationModel model(0);
  float score = 0;
  for (size_t i = 0; i < kFeatures; ++i) score += sample.weights[i] * sample.values[i];
  EXPECT_FLOAT_EQ(model.Score(sample.rows()), score);
  Numbers weights(kFeatures);
  model.Gradients(sample.rows(), 2, 0, {.weights = weights, .factors = {}});
  for (size_t i = 0; i < kFeatures; ++i) EXPECT_EQ(weights[i], 2 * sample.values[i]);
}

TEST(LogLossTest, IsThatOfALabel) {
  EXPECT_NEAR(LogLoss(0, 1), std::log(2), 1e-6);
  EXPECT_NEAR(LogLoss(1.5f, 1), std::log(1 + std::exp(-1.5)), 1e-6);
  EXPECT_NEAR(LogLoss(1.5f, 0), std::log(1 + std::exp(1.5)), 1e-6);
  EXPECT_NEAR(LogLoss(-500, 1), 500, 1e-3);
  EXPECT_NEAR(LogLoss(500, 1), 0, 1e-9);
  EXPECT_NEAR(LogLossSlope(1.5f, 1), (LogLoss(1.51f, 1) - LogLoss(1.49f, 1)) / 0.02, 1e-4);
  EXPECT_NEAR(LogLossSlope(1.5f, 0), (LogLoss(1.51f, 0) - LogLoss(1.49f, 0)) / 0.02, 1e-4);
}

TEST(ScoreHistogramTest, CountsPairsInOrder) {
  ScoreHistogram scores;
  EXPECT_EQ(scores.Auc(), 0.5);
  EXPECT_EQ(scores.LogLossMean(), 0);
  scores.Add(2, 1);
  scores.Add(1, 0);
  EXPECT_EQ(scores.Auc(), 1);
  scores.Add(3, 0);
  EXPECT_EQ(scores.Auc(), 0.5);
  scores.Add(1, 1);  // equal to one of them
  EXPECT_EQ(scores.Auc(), 1.5 / 4);
  EXPECT_EQ(scores.samples(), 4);
  EXPECT_NEAR(scores.LogLossMean(),
              (LogLoss(2, 1) + LogLoss(1, 0) + LogLoss(3, 0) + LogLoss(1, 1)) / 4, 1e-9);
}

TEST(ScoreHistogramTest, AddsUpOverWorkers) {
  Random random(4);
  ScoreHistogram all, first, second;
  for (int i = 0; i < 1000; ++i) {
    const float label = random.Chance(0.3) ? 1.0f : 0.0f;
    const auto score = static_cast<float>(random.Uniform() * 4 - 2) + label;
    all.Add(score, label);
    (i % 3 == 0 ? first : second).Add(score, label);
  }
  std::vector<double> sums(first.sums().begin(), first.sums().end());
  for (size_t i = 0; i < sums.size(); ++i) sums[i] += second.sums()[i];
  const ScoreHistogram together(sums);
  EXPECT_EQ(together.Auc(), all.Auc());
  EXPECT_NEAR(together.LogLossMean(), all.LogLossMean(), 1e-9);
  EXPECT_GT(all.Auc(), 0.6);
}

TEST(ScoreHistogramTest, TakesScoresFarOutside) {
  ScoreHistogram scores;
  scores.Add(1e30f, 1);
  scores.Add(-1e30f, 0);
  scores.Add(std::numeric_limits<float>::infinity(), 1);
  scores.Add(std::numeric_limits<float>::quiet_NaN(), 0);
  EXPECT_EQ(scores.Auc(), 1);
}

}  // namespace
}  // namespace covey::factorization

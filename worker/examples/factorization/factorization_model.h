// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace covey::factorization {

// The rows of a sample's features, in their order: a weight for each, and `factors` numbers, which
// may be none.
struct FeatureRows {
  std::span<const float> values;
  std::span<const float> weights;
  std::span<const float> factors;
};

struct FeatureGradients {
  std::span<float> weights;
  std::span<float> factors;
};

// A factorization machine (Rendle 2010): a sample scores the sum of its weights, and of the inner
// products of the factors of all pairs of its features, all times their values. Without factors it
// is a linear model. Keeps its memory between calls.
class FactorizationModel {
 public:
  explicit FactorizationModel(size_t factors) : sums_(factors) {}

  float Score(const FeatureRows& rows);
  // Writes the gradients of `slope` * score + l2 / 2 * the squares of all rows. After Score of the
  // same rows.
  void Gradients(const FeatureRows& rows, float slope, float l2, const FeatureGradients& gradients);

 private:
  std::vector<float> sums_;  // of the factors, times their values
};

// Of a label, 0 or 1, under a score: -log of the probability that the score gives it.
double LogLoss(float score, float label);
// The derivative of LogLoss by the score.
float LogLossSlope(float score, float label);

}  // namespace covey::factorization

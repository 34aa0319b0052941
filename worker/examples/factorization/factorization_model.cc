// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/factorization_model.h"

#include <algorithm>
#include <cmath>

namespace covey::factorization {

float FactorizationModel::Score(const FeatureRows& rows) {
  const size_t factors = sums_.size();
  std::fill(sums_.begin(), sums_.end(), 0.0f);
  float score = 0;
  float squares = 0;
  for (size_t i = 0; i < rows.values.size(); ++i) {
    const float value = rows.values[i];
    score += rows.weights[i] * value;
    const float* row = rows.factors.data() + i * factors;
    for (size_t f = 0; f < factors; ++f) {
      const float term = row[f] * value;
      sums_[f] += term;
      squares += term * term;
    }
  }
  float products = 0;
  for (const float sum : sums_) products += sum * sum;
  return score + (products - squares) / 2;
}

void FactorizationModel::Gradients(const FeatureRows& rows, float slope, float l2,
                                   const FeatureGradients& gradients) {
  const size_t factors = sums_.size();
  for (size_t i = 0; i < rows.values.size(); ++i) {
    const float value = rows.values[i];
    const float scale = slope * value;
    gradients.weights[i] = scale + l2 * rows.weights[i];
    const float* row = rows.factors.data() + i * factors;
    float* gradient = gradients.factors.data() + i * factors;
    for (size_t f = 0; f < factors; ++f) {
      gradient[f] = scale * (sums_[f] - row[f] * value) + l2 * row[f];
    }
  }
}

double LogLoss(float score, float label) {
  // log(1 + exp(-s)) for label 1, with s mirrored for label 0.
  const double margin = label > 0.5f ? score : -score;
  return margin > 0 ? std::log1p(std::exp(-margin)) : std::log1p(std::exp(margin)) - margin;
}

float LogLossSlope(float score, float label) { return 1 / (1 + std::exp(-score)) - label; }

}  // namespace covey::factorization

// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/lbfgs/problem.h"

#include <cmath>

#include "common/base/random.h"

namespace covey::lbfgs {
namespace {

// In [-1, 1): the weights that the labels follow.
double TrueWeight(uint64_t feature) {
  constexpr double kHalf = 9.2233720368547758e18;  // 2^63
  return static_cast<double>(MixBits(feature)) / kHalf - 1;
}

}  // namespace

SampleRange PartOf(uint64_t samples, uint64_t rank, uint64_t workers) {
  const uint64_t first = samples * rank / workers;
  return {.first = first, .count = samples * (rank + 1) / workers - first};
}

LogisticProblem::LogisticProblem(const ProblemSize& size, uint64_t seed, const SampleRange& part)
    : features_per_sample_(size.features_per_sample) {
  const double scale = 1 / std::sqrt(static_cast<double>(features_per_sample_));
  entries_.reserve(part.count * features_per_sample_);
  labels_.reserve(part.count);
  for (uint64_t sample = part.first; sample < part.first + part.count; ++sample) {
    Random random(MixBits(seed) + sample);
    double score = 0;
    for (uint64_t i = 0; i < features_per_sample_; ++i) {
      // Low features are common, as in text.
      const double draw = random.Uniform();
      const auto feature =
          static_cast<uint32_t>(draw * draw * static_cast<double>(size.features - 1));
      const double value = (random.Uniform() * 2 - 1) * scale;
      entries_.push_back({.feature = feature, .value = value});
      score += value * TrueWeight(feature);
    }
    const double noise = (random.Uniform() - 0.5) * scale;
    labels_.push_back(score + noise > 0 ? 1 : -1);
  }
}

double LogisticProblem::AddGradient(std::span<const double> weights,
                                    std::span<double> gradient) const {
  double loss = 0;
  const Entry* entry = entries_.data();
  for (const double label : labels_) {
    double score = 0;
    for (uint64_t i = 0; i < features_per_sample_; ++i) {
      score += entry[i].value * weights[entry[i].feature];
    }
    const double margin = label * score;
    const double decay = std::exp(-std::fabs(margin));
    loss += std::log1p(decay) + (margin < 0 ? -margin : 0);
    const double slope = -label * (margin > 0 ? decay : 1) / (1 + decay);
    for (uint64_t i = 0; i < features_per_sample_; ++i) {
      gradient[entry[i].feature] += slope * entry[i].value;
    }
    entry += features_per_sample_;
  }
  return loss;
}

}  // namespace covey::lbfgs

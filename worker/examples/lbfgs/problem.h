// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace covey::lbfgs {

// Samples first … first + count - 1.
struct SampleRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

// The part of one of `workers` equal workers.
SampleRange PartOf(uint64_t samples, uint64_t rank, uint64_t workers);

struct ProblemSize {
  uint64_t features = 0;
  uint64_t samples = 0;
  // Features of a sample other than 0; some may be the same one.
  uint64_t features_per_sample = 32;
};

// Logistic regression on samples that are drawn: a function of the size and the seed alone.
//
//   loss(weights) = sum over samples of log(1 + exp(-label * <features, weights>))
//
// Immutable, so thread-safe. Memory: 12 bytes per feature of a sample, of `part` only.
class LogisticProblem {
 public:
  LogisticProblem(const ProblemSize& size, uint64_t seed, const SampleRange& part);

  // Adds the gradient of the loss of the part's samples, and returns the loss. Precondition: both
  // spans have as many elements as there are features.
  double AddGradient(std::span<const double> weights, std::span<double> gradient) const;

 private:
  struct Entry {
    uint32_t feature = 0;
    double value = 0;
  };

  const uint64_t features_per_sample_;
  std::vector<Entry> entries_;  // of one sample after the other
  std::vector<double> labels_;  // 1 or -1
};

}  // namespace covey::lbfgs

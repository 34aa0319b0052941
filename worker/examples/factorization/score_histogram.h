// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace covey::factorization {

// How well scores tell labels apart, as sums that add up over workers: counts of scores in bins of
// 1/256, for each label, and the summed loss.
class ScoreHistogram {
 public:
  // Sums in all.
  static constexpr size_t kSums = 2 * 8192 + 1;

  ScoreHistogram() : sums_(kSums) {}
  // `sums`: kSums of them.
  explicit ScoreHistogram(std::vector<double> sums);

  // Label 0 or 1. Scores beyond -16 and 16 count in the outermost bins.
  void Add(float score, float label);

  std::span<const double> sums() const { return sums_; }

  // The probability that a sample of label 1 has a higher score than one of label 0, where scores
  // of one bin are equal, which counts half. 0.5 when a label is missing.
  double Auc() const;
  double LogLossMean() const;
  double samples() const;

 private:
  std::vector<double> sums_;
};

}  // namespace covey::factorization

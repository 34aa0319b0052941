// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/score_histogram.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "worker/examples/factorization/factorization_model.h"

namespace covey::factorization {
namespace {

constexpr size_t kBins = (ScoreHistogram::kSums - 1) / 2;
constexpr float kBinsPerUnit = 256;

}  // namespace

ScoreHistogram::ScoreHistogram(std::vector<double> sums) : sums_(std::move(sums)) {
  COVEY_CHECK(sums_.size() == kSums);
}

void ScoreHistogram::Add(float score, float label) {
  // A score that is no number counts as the lowest.
  const float place = score * kBinsPerUnit + static_cast<float>(kBins) / 2;
  const auto bin =
      place > 0 ? static_cast<size_t>(std::min(place, static_cast<float>(kBins - 1))) : size_t{0};
  ++sums_[(label > 0.5f ? kBins : 0) + bin];
  sums_.back() += LogLoss(score, label);
}

double ScoreHistogram::Auc() const {
  double below = 0;  // samples of label 0 in lower bins
  double ones = 0;
  double wins = 0;
  for (size_t bin = 0; bin < kBins; ++bin) {
    wins += sums_[kBins + bin] * (below + sums_[bin] / 2);
    below += sums_[bin];
    ones += sums_[kBins + bin];
  }
  return below > 0 && ones > 0 ? wins / (below * ones) : 0.5;
}

double ScoreHistogram::samples() const {
  return std::accumulate(sums_.begin(), sums_.end() - 1, 0.0);
}

double ScoreHistogram::LogLossMean() const {
  const double count = samples();
  return count > 0 ? sums_.back() / count : 0;
}

}  // namespace covey::factorization

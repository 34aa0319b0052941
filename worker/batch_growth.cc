// SPDX-License-Identifier: Apache-2.0
#include "worker/batch_growth.h"

#include <cmath>

#include "common/base/check.h"

namespace covey::worker {

BatchGrowth::BatchGrowth(const BatchGrowthOptions& options) : options_(options) {
  COVEY_CHECK(options.member_batch > 0 && options.multiple_max > 0);
}

void BatchGrowth::Add(const GradientNorms& norms) {
  estimator_.Add(norms);
  if (norms.starts_over) {
    steps_above_ = 0;
    const double member_batch =
        static_cast<double>(norms.samples) / static_cast<double>(norms.members);
    multiple_ = 1;
    // Up to the power of two whose logarithm is nearest.
    while (2 * multiple_ <= options_.multiple_max &&
           member_batch > std::sqrt(2.0) * static_cast<double>(multiple_ * options_.member_batch)) {
      multiple_ *= 2;
    }
  }
  const std::optional<GradientNoise> noise = estimator_.noise();
  const bool above = noise && noise->scale() > options_.factor * static_cast<double>(norms.samples);
  steps_above_ = above ? steps_above_ + 1 : 0;
  if (steps_above_ < options_.steps || 2 * multiple_ > options_.multiple_max) return;
  multiple_ *= 2;
  steps_above_ = 0;
}

}  // namespace covey::worker

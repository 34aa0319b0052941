// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "worker/gradient_noise.h"

namespace covey::worker {

struct BatchGrowthOptions {
  // Examples of a member and step at first, at least 1.
  uint64_t member_batch = 1;
  // The largest multiple of it, at least 1. The batch only doubles, so this is best a power of two.
  uint64_t multiple_max = 1;
  // The batch doubles when the noise scale has been above `factor` times the group's batch in each
  // of the last `steps` steps. More of either grow it later.
  double factor = 2;
  uint64_t steps = 100;
};

// Decides how large a group's batch is while it trains, from the norms of its steps: it doubles
// where the noise of the gradients hides more than their signal, in place of, or beside, a falling
// learning rate (Smith et al. 2018, "Don't Decay the Learning Rate, Increase the Batch Size").
//
//   for (const GradientNorms& norms : norms_of_new_steps) growth.Add(norms);
//   samples = hybrid->SamplesFor(growth.multiple() * batch * group_size);
//
// It never shrinks, except when the members have met again: all of them, a new one included, then
// take the power of two that is nearest to what the group had in its next step.
//
// Members that have added the same norms decide alike. Pure: the same norms give the same
// decisions.
class BatchGrowth {
 public:
  explicit BatchGrowth(const BatchGrowthOptions& options);

  void Add(const GradientNorms& norms);
  // Of the members' batches at first; a power of two.
  uint64_t multiple() const { return multiple_; }
  std::optional<GradientNoise> noise() const { return estimator_.noise(); }

 private:
  const BatchGrowthOptions options_;
  NoiseEstimator estimator_;
  uint64_t multiple_ = 1;
  uint64_t steps_above_ = 0;  // since the last one that was not, and since the batch has grown
};

}  // namespace covey::worker

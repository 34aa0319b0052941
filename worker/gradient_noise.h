// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

namespace covey::worker {

// The squared norms of one step's gradients in a group (HybridStep::TakeGradientNorms). Member i
// had n_i examples and the mean gradient g_i; the group has n = sum of n_i. The same bits on all
// members.
struct GradientNorms {
  uint64_t step = 0;
  // The members have met since the step before these norms. Each of them forgets what it has added
  // up before, so that they all decide alike from now on, also a new one.
  bool starts_over = false;
  // Members with examples, and examples of all.
  uint32_t members = 0;
  uint64_t samples = 0;
  // Sum of n_i |g_i|^2 / n, and |sum of n_i g_i / n|^2. NaN and infinity where a gradient has them.
  double member_square = 0;
  double group_square = 0;
};

// What the gradient of a step consists of, per example: over n examples, its expected squared norm
// is signal + variance / n.
struct GradientNoise {
  double signal = 0;    // |G|^2, the squared norm of the true gradient
  double variance = 0;  // tr(Sigma), over single examples

  // The gradient noise scale B = tr(Sigma) / |G|^2 of McCandlish et al. 2018, "An Empirical Model
  // of Large-Batch Training", in examples: a batch far smaller wastes steps, and one far larger
  // wastes examples. Infinite where no signal is seen; 0 without variance.
  double scale() const;
  // How much larger the learning rate may be with `batch` examples a step than with `base_batch`,
  // for which it was tuned: the gain of AdaScale (Johnson et al. 2020),
  //
  //   (variance / base_batch + signal) / (variance / batch + signal)
  //
  // between 1, where the noise is small, and batch / base_batch, where it is large. 1 where both
  // are 0. Preconditions: both batches are above 0.
  double RateGain(uint64_t base_batch, uint64_t batch) const;
};

// Estimates the noise of gradients from the norms of many steps. With k members of n examples in
// all, as in McCandlish et al. 2018, appendix A.1, where the small batch is n / k:
//
//   |G|^2 = (k group_square - member_square) / (k - 1)
//   tr(Sigma) = n (member_square - group_square) / (k - 1)
//
// Both are unbiased for members of any batches, since the weights n_i / n cancel the members' own
// 1 / n_i. Each is averaged over the steps, with weights that fall by exp(-1 / window) a step.
// Ratios are taken of the averages: those of single steps have no useful mean.
//
// Steps of fewer than two members with examples, and those with a norm that is not finite, say
// nothing and are left out. Pure: the same norms give the same bits.
class NoiseEstimator {
 public:
  static constexpr double kWindow = 100;
  // `window`: steps, at least 1. Longer is steadier, and later to see a change.
  explicit NoiseEstimator(double window = kWindow);

  void Add(const GradientNorms& norms);
  // Absent until a step has said something: always in a group of one member.
  std::optional<GradientNoise> noise() const;

 private:
  const double keep_;
  double weight_ = 0;
  double signal_ = 0;
  double variance_ = 0;
};

}  // namespace covey::worker

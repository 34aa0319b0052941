// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <span>

#include "common/optimizer/makers.h"
#include "common/optimizer/portable_math.h"
#include "common/optimizer/trust_kernels.h"
#include "common/optimizer/update_kernels.h"

namespace covey {
namespace {

// Slot 0: running mean of the gradient; slot 1: running mean of its square.
class Lamb final : public Optimizer {
 public:
  Lamb(const OptimizerConfig& config, const UpdateKernels& kernels)
      : config_(config), kernels_(kernels) {}

  int state_slots() const override { return 2; }

 private:
  void Update(const UpdateContext& context, std::span<const float> gradient_sum,
              std::span<const float> values_in, std::span<float> values_out,
              std::span<const SlotSpans> slots) const override {
    const double mean_correction = 1 / (1 - Power(config_.beta1, context.update_index));
    const double square_correction = 1 / (1 - Power(config_.beta2, context.update_index));
    kernels_.lamb({.gradient_scale = static_cast<float>(context.gradient_scale),
                   .weight_decay = static_cast<float>(config_.weight_decay),
                   .learning_rate = static_cast<float>(context.learning_rate),
                   .mean_correction = static_cast<float>(mean_correction),
                   .root_correction = static_cast<float>(std::sqrt(square_correction)),
                   .epsilon = static_cast<float>(config_.epsilon),
                   .beta1 = static_cast<float>(config_.beta1),
                   .one_minus_beta1 = static_cast<float>(1 - config_.beta1),
                   .beta2 = static_cast<float>(config_.beta2),
                   .one_minus_beta2 = static_cast<float>(1 - config_.beta2)},
                  gradient_sum, values_in, values_out, slots[0], slots[1]);
  }

  const OptimizerConfig config_;
  const UpdateKernels kernels_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLamb(const OptimizerConfig& config, const UpdateKernels& kernels) {
  return std::make_unique<Lamb>(config, kernels);
}

}  // namespace covey

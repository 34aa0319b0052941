// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <memory>
#include <span>

#include "common/optimizer/kernels.h"
#include "common/optimizer/makers.h"
#include "common/optimizer/portable_math.h"
#include "common/optimizer/update_kernels.h"

namespace covey {
namespace {

// Adam and AdamW: they differ only in what weight decay acts on, the gradient or the value.
// Slot 0: running mean of the gradient; slot 1: running mean of its square.
class Adam final : public Optimizer {
 public:
  Adam(const OptimizerConfig& config, const UpdateKernels& kernels)
      : config_(config), kernels_(kernels) {}

  int state_slots() const override { return 2; }

 private:
  void Update(const UpdateContext& context, std::span<const float> gradient_sum,
              std::span<const float> values_in, std::span<float> values_out,
              std::span<const SlotSpans> slots) const override {
    const bool decoupled = config_.kind == OptimizerKind::kAdamW;
    const double gradient_decay = decoupled ? 0 : config_.weight_decay;
    const double value_decay = decoupled ? context.learning_rate * config_.weight_decay : 0;
    // The running means start at 0; these corrections remove the bias that this causes.
    const double mean_correction = 1 / (1 - Power(config_.beta1, context.update_index));
    const double square_correction = 1 / (1 - Power(config_.beta2, context.update_index));
    kernels_.adam({.gradient = {.gradient_scale = static_cast<float>(context.gradient_scale),
                                .weight_decay = static_cast<float>(gradient_decay)},
                   .rate = static_cast<float>(context.learning_rate * mean_correction),
                   .root_correction = static_cast<float>(std::sqrt(square_correction)),
                   .epsilon = static_cast<float>(config_.epsilon),
                   .keep = static_cast<float>(1 - value_decay),
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

std::unique_ptr<Optimizer> MakeAdam(const OptimizerConfig& config, const UpdateKernels& kernels) {
  return std::make_unique<Adam>(config, kernels);
}

}  // namespace covey

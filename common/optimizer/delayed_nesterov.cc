// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>

#include "common/optimizer/kernels.h"
#include "common/optimizer/makers.h"
#include "common/optimizer/update_kernels.h"

namespace covey {
namespace {

// Slot 0: the velocity; slot 1: the sum of the gradients that it does not contain yet.
class DelayedNesterov final : public Optimizer {
 public:
  DelayedNesterov(const OptimizerConfig& config, const UpdateKernels& kernels)
      : config_(config), kernels_(kernels) {}

  int state_slots() const override { return 2; }

 private:
  void Update(const UpdateContext& context, std::span<const float> gradient_sum,
              std::span<const float> values_in, std::span<float> values_out,
              std::span<const SlotSpans> slots) const override {
    const DelayedNesterovScalars scalars = {
        .gradient = {.gradient_scale = static_cast<float>(context.gradient_scale),
                     .weight_decay = static_cast<float>(config_.weight_decay)},
        .learning_rate = static_cast<float>(context.learning_rate),
        .momentum = static_cast<float>(context.momentum.value_or(config_.momentum)),
        .share = static_cast<float>(1.0 / config_.delay)};
    if (context.update_index % config_.delay == 0) {
      kernels_.release_delayed_nesterov(scalars, gradient_sum, values_in, values_out, slots[0],
                                        slots[1]);
    } else {
      kernels_.hold_delayed_nesterov(scalars, gradient_sum, values_in, values_out, slots[0],
                                     slots[1]);
    }
  }

  const OptimizerConfig config_;
  const UpdateKernels kernels_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeDelayedNesterov(const OptimizerConfig& config,
                                               const UpdateKernels& kernels) {
  return std::make_unique<DelayedNesterov>(config, kernels);
}

}  // namespace covey

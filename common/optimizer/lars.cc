// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>

#include "common/optimizer/makers.h"
#include "common/optimizer/trust_kernels.h"
#include "common/optimizer/update_kernels.h"

namespace covey {
namespace {

// Slot 0: the velocity.
class Lars final : public Optimizer {
 public:
  Lars(const OptimizerConfig& config, const UpdateKernels& kernels)
      : config_(config), kernels_(kernels) {}

  int state_slots() const override { return 1; }

 private:
  void Update(const UpdateContext& context, std::span<const float> gradient_sum,
              std::span<const float> values_in, std::span<float> values_out,
              std::span<const SlotSpans> slots) const override {
    kernels_.lars({.gradient_scale = static_cast<float>(context.gradient_scale),
                   .weight_decay = static_cast<float>(config_.weight_decay),
                   .learning_rate = static_cast<float>(context.learning_rate),
                   .momentum = static_cast<float>(context.momentum.value_or(config_.momentum)),
                   .trust = config_.trust_coefficient},
                  gradient_sum, values_in, values_out, slots[0]);
  }

  const OptimizerConfig config_;
  const UpdateKernels kernels_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeLars(const OptimizerConfig& config, const UpdateKernels& kernels) {
  return std::make_unique<Lars>(config, kernels);
}

}  // namespace covey

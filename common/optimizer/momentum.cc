// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>

#include "common/optimizer/kernels.h"
#include "common/optimizer/makers.h"
#include "common/optimizer/update_kernels.h"

namespace covey {
namespace {

// Heavy ball and Nesterov, which differ only in the point at which the gradient is taken. Slot 0:
// the velocity.
class Momentum final : public Optimizer {
 public:
  Momentum(const OptimizerConfig& config, const UpdateKernels& kernels)
      : update_(config.kind == OptimizerKind::kNesterov ? kernels.nesterov : kernels.momentum),
        weight_decay_(static_cast<float>(config.weight_decay)),
        momentum_(static_cast<float>(config.momentum)) {}

  int state_slots() const override { return 1; }

 private:
  void Update(const UpdateContext& context, std::span<const float> gradient_sum,
              std::span<const float> values_in, std::span<float> values_out,
              std::span<const SlotSpans> slots) const override {
    const MomentumScalars scalars = {
        .gradient = {.gradient_scale = static_cast<float>(context.gradient_scale),
                     .weight_decay = weight_decay_},
        .learning_rate = static_cast<float>(context.learning_rate),
        .momentum = context.momentum ? static_cast<float>(*context.momentum) : momentum_};
    update_(scalars, gradient_sum, values_in, values_out, slots[0]);
  }

  const decltype(UpdateKernels::momentum) update_;
  const float weight_decay_;
  const float momentum_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeMomentum(const OptimizerConfig& config,
                                        const UpdateKernels& kernels) {
  return std::make_unique<Momentum>(config, kernels);
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>

#include "common/optimizer/kernels.h"
#include "common/optimizer/makers.h"
#include "common/optimizer/update_kernels.h"

namespace covey {
namespace {

// Slot 0: the sum of the squared gradients.
class Adagrad final : public Optimizer {
 public:
  Adagrad(const OptimizerConfig& config, const UpdateKernels& kernels)
      : weight_decay_(static_cast<float>(config.weight_decay)),
        epsilon_(static_cast<float>(config.epsilon)),
        kernels_(kernels) {}

  int state_slots() const override { return 1; }

 private:
  void Update(const UpdateContext& context, std::span<const float> gradient_sum,
              std::span<const float> values_in, std::span<float> values_out,
              std::span<const SlotSpans> slots) const override {
    kernels_.adagrad({.gradient = {.gradient_scale = static_cast<float>(context.gradient_scale),
                                   .weight_decay = weight_decay_},
                      .learning_rate = static_cast<float>(context.learning_rate),
                      .epsilon = epsilon_},
                     gradient_sum, values_in, values_out, slots[0]);
  }

  const float weight_decay_;
  const float epsilon_;
  const UpdateKernels kernels_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeAdagrad(const OptimizerConfig& config,
                                       const UpdateKernels& kernels) {
  return std::make_unique<Adagrad>(config, kernels);
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <span>

#include "common/optimizer/kernels.h"
#include "common/optimizer/makers.h"
#include "common/optimizer/update_kernels.h"

namespace covey {
namespace {

class Sgd final : public Optimizer {
 public:
  Sgd(const OptimizerConfig& config, const UpdateKernels& kernels)
      : weight_decay_(static_cast<float>(config.weight_decay)), kernels_(kernels) {}

  int state_slots() const override { return 0; }

 private:
  void Update(const UpdateContext& context, std::span<const float> gradient_sum,
              std::span<const float> values_in, std::span<float> values_out,
              std::span<const SlotSpans> /*slots*/) const override {
    kernels_.sgd({.gradient = {.gradient_scale = static_cast<float>(context.gradient_scale),
                               .weight_decay = weight_decay_},
                  .learning_rate = static_cast<float>(context.learning_rate)},
                 gradient_sum, values_in, values_out);
  }

  const float weight_decay_;
  const UpdateKernels kernels_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeSgd(const OptimizerConfig& config, const UpdateKernels& kernels) {
  return std::make_unique<Sgd>(config, kernels);
}

}  // namespace covey

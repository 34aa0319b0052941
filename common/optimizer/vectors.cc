// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <span>

#include "common/optimizer/kernels.h"
#include "common/optimizer/makers.h"
#include "common/optimizer/update_kernels.h"

namespace covey {
namespace {

// Only where they were replaced: in the memory of a device, updates are in place.
void KeepAsItIs(std::span<const float> in, std::span<float> out) {
  if (out.data() != in.data()) std::copy(in.begin(), in.end(), out.begin());
}

// Each slot is a vector; the first one takes the gradients.
class Vectors final : public Optimizer {
 public:
  Vectors(const OptimizerConfig& config, const UpdateKernels& kernels)
      : vectors_(static_cast<int>(config.vectors)), kernels_(kernels) {}

  int state_slots() const override { return vectors_; }

 private:
  void Update(const UpdateContext& context, std::span<const float> gradient_sum,
              std::span<const float> values_in, std::span<float> values_out,
              std::span<const SlotSpans> slots) const override {
    // SGD subtracts.
    kernels_.sgd({.gradient = {.gradient_scale = static_cast<float>(context.gradient_scale)},
                  .learning_rate = -static_cast<float>(context.learning_rate)},
                 gradient_sum, slots[0].in, slots[0].out);
    KeepAsItIs(values_in, values_out);
    for (const SlotSpans& slot : slots.subspan(1)) KeepAsItIs(slot.in, slot.out);
  }

  const int vectors_;
  const UpdateKernels kernels_;
};

}  // namespace

std::unique_ptr<Optimizer> MakeVectors(const OptimizerConfig& config,
                                       const UpdateKernels& kernels) {
  return std::make_unique<Vectors>(config, kernels);
}

}  // namespace covey

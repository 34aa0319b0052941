// SPDX-License-Identifier: Apache-2.0
#include "server/table/dense_shard.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/base/buffer.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::server {

absl::StatusOr<std::unique_ptr<DenseShard>> DenseShard::Create(const DenseShardConfig& config,
                                                               SpareBuffers& spares) {
  if (config.element_count == 0 || config.element_count > kTableElementsMax ||
      config.first_element > kTableElementsMax - config.element_count) {
    return absl::InvalidArgumentError(absl::StrCat(
        "open shard: ", config.element_count, " elements from ", config.first_element,
        " on; choose at least 1, and none beyond the ", kTableElementsMax, " of a table"));
  }
  COVEY_RETURN_IF_ERROR(config.initializer.Validate());
  COVEY_ASSIGN_OR_RETURN(auto optimizer, MakeOptimizer(config.optimizer));
  COVEY_ASSIGN_OR_RETURN(auto schedule, LearningRateSchedule::Create(config.learning_rate));
  return absl::WrapUnique(new DenseShard(config, std::move(optimizer), schedule, spares));
}

DenseShard::DenseShard(const DenseShardConfig& config, std::unique_ptr<Optimizer> optimizer,
                       LearningRateSchedule schedule, SpareBuffers& spares)
    : first_element_(config.first_element),
      optimizer_(std::move(optimizer)),
      schedule_(schedule),
      spares_(spares),
      values_(Buffer::Allocate(config.element_count * sizeof(float))) {
  Initialize(config.initializer, first_element_, values_.MutableAs<float>());
  for (int slot = 0; slot < optimizer_->state_slots(); ++slot) {
    slots_.push_back(Buffer::Allocate(values_.size()));
    slot_spans_.push_back(slots_.back().MutableAs<float>());
    std::fill(slot_spans_.back().begin(), slot_spans_.back().end(), 0.0f);
  }
}

void DenseShard::Restore(Buffer values, std::vector<Buffer> slots, uint64_t version,
                         uint64_t samples) {
  COVEY_CHECK(values.size() == values_.size() && slots.size() == slots_.size());
  values_ = std::move(values);
  slots_ = std::move(slots);
  slot_spans_.clear();
  for (Buffer& slot : slots_) {
    COVEY_CHECK(slot.size() == values_.size());
    slot_spans_.push_back(slot.MutableAs<float>());
  }
  version_ = version;
  samples_ = samples;
}

absl::Status DenseShard::Apply(std::span<const float> gradient_sum, uint64_t samples,
                               const UpdateAdjustment& adjustment) {
  if (gradient_sum.size() != element_count()) {
    return absl::InvalidArgumentError(absl::StrCat("apply: the gradient has ", gradient_sum.size(),
                                                   " elements, the shard has ", element_count(),
                                                   "; push the shard's own element range"));
  }
  if (samples == 0 || samples > std::numeric_limits<uint64_t>::max() - samples_) {
    return absl::InvalidArgumentError(
        absl::StrCat("apply: the gradient stands for ", samples, " samples, after ", samples_,
                     " so far; push the number of training examples in the sum"));
  }
  const UpdateContext context = {
      .learning_rate = schedule_.RateAt(samples_ + samples) * adjustment.rate_factor,
      .gradient_scale = 1 / static_cast<double>(samples),
      .update_index = version_ + 1,
      .momentum = adjustment.momentum};
  if (values_.IsUnique()) {
    const std::span<float> values = values_.MutableAs<float>();
    optimizer_->Apply(context, gradient_sum, values, values, slot_spans_);
  } else {
    Buffer next = spares_.Take(values_.size());
    optimizer_->Apply(context, gradient_sum, values_.As<float>(), next.MutableAs<float>(),
                      slot_spans_);
    spares_.Retire(std::exchange(values_, std::move(next)));
  }
  ++version_;
  samples_ += samples;
  return absl::OkStatus();
}

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#include "server/table/host_memory.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::server {
namespace {

class HostShard final : public ShardMemory {
 public:
  HostShard(std::unique_ptr<Optimizer> optimizer, Buffer values, SpareBuffers& spares)
      : optimizer_(std::move(optimizer)), spares_(spares), values_(std::move(values)) {
    for (int slot = 0; slot < optimizer_->state_slots(); ++slot) {
      slots_.push_back(Buffer::Allocate(values_.size()));
      slot_spans_.push_back(slots_.back().MutableAs<float>());
      std::fill(slot_spans_.back().begin(), slot_spans_.back().end(), 0.0f);
    }
  }

  size_t slots() const override { return slots_.size(); }

  void Update(const UpdateContext& context, std::span<const float> gradient_sum) override {
    if (values_.IsUnique()) {
      const std::span<float> values = values_.MutableAs<float>();
      optimizer_->Apply(context, gradient_sum, values, values, slot_spans_);
      return;
    }
    Buffer next = spares_.Take(values_.size());
    optimizer_->Apply(context, gradient_sum, values_.As<float>(), next.MutableAs<float>(),
                      slot_spans_);
    spares_.Retire(std::exchange(values_, std::move(next)));
  }

  Buffer Values() override { return values_; }
  Buffer Slot(size_t slot) override { return slots_[slot]; }

  void Restore(Buffer values, std::vector<Buffer> slots) override {
    COVEY_CHECK(values.size() == values_.size() && slots.size() == slots_.size());
    values_ = std::move(values);
    slots_ = std::move(slots);
    slot_spans_.clear();
    for (Buffer& slot : slots_) {
      COVEY_CHECK(slot.size() == values_.size());
      slot_spans_.push_back(slot.MutableAs<float>());
    }
  }

 private:
  const std::unique_ptr<Optimizer> optimizer_;
  SpareBuffers& spares_;
  Buffer values_;
  std::vector<Buffer> slots_;
  std::vector<std::span<float>> slot_spans_;  // of slots_
};

}  // namespace

absl::StatusOr<std::unique_ptr<ShardMemory>> HostMemory::Hold(const OptimizerConfig& optimizer,
                                                              Buffer values) {
  COVEY_ASSIGN_OR_RETURN(auto made, MakeOptimizer(optimizer));
  return std::make_unique<HostShard>(std::move(made), std::move(values), spares_);
}

}  // namespace covey::server

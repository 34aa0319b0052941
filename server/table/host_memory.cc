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
  HostShard(std::unique_ptr<Optimizer> optimizer, Buffer values, BufferPool& spares)
      : optimizer_(std::move(optimizer)), spares_(spares) {
    arrays_.push_back(std::move(values));
    for (int slot = 0; slot < optimizer_->state_slots(); ++slot) {
      const std::span<float> zeros = arrays_.emplace_back(NewArray()).MutableAs<float>();
      std::fill(zeros.begin(), zeros.end(), 0.0f);
    }
    spans_.resize(arrays_.size());
    replaced_.resize(arrays_.size());
  }

  size_t slots() const override { return arrays_.size() - 1; }

  void Update(const UpdateContext& context, std::span<const float> gradient_sum) override {
    for (size_t i = 0; i < arrays_.size(); ++i) Open(i);
    optimizer_->Apply(context, gradient_sum, spans_[0].in, spans_[0].out,
                      std::span(spans_).subspan(1));
    // Not before: a later Take of the same update must not return what is still read.
    for (Buffer& array : replaced_) array = Buffer();
  }

  void Change(size_t array,
              absl::FunctionRef<void(std::span<const float>, std::span<float>)> change) override {
    Open(array);
    change(spans_[array].in, spans_[array].out);
    replaced_[array] = Buffer();
  }

  Buffer Values() override { return arrays_[0]; }
  Buffer Slot(size_t slot) override { return arrays_[slot + 1]; }

  Buffer NewArray() override { return spares_.Take(bytes()); }
  void Restore(Buffer values, std::vector<Buffer> new_slots) override {
    COVEY_CHECK(values.size() == bytes() && new_slots.size() == slots());
    arrays_[0] = std::move(values);
    for (size_t slot = 0; slot < slots(); ++slot) {
      COVEY_CHECK(new_slots[slot].size() == bytes());
      arrays_[slot + 1] = std::move(new_slots[slot]);
    }
  }

 private:
  size_t bytes() const { return arrays_[0].size(); }

  // Readers keep the array that they have.
  void Open(size_t array) {
    spans_[array].in = arrays_[array].As<float>();
    if (!arrays_[array].IsUnique()) {
      replaced_[array] = std::exchange(arrays_[array], spares_.Take(bytes()));
    }
    spans_[array].out = arrays_[array].MutableAs<float>();
  }

  const std::unique_ptr<Optimizer> optimizer_;
  BufferPool& spares_;
  std::vector<Buffer> arrays_;  // the values, then each slot
  // Of the update in progress, one for each array. They are kept so that no update allocates.
  std::vector<SlotSpans> spans_;
  std::vector<Buffer> replaced_;  // empty: written in place
};

}  // namespace

absl::StatusOr<std::unique_ptr<ShardMemory>> HostMemory::Hold(const OptimizerConfig& optimizer,
                                                              Buffer values) {
  COVEY_ASSIGN_OR_RETURN(auto made, MakeOptimizer(optimizer));
  return std::make_unique<HostShard>(std::move(made), std::move(values), spares_);
}

}  // namespace covey::server

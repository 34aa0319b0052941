// SPDX-License-Identifier: Apache-2.0
#include "server/table/device_memory.h"

#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/status_macros.h"

namespace covey::server {

class DeviceShard final : public ShardMemory {
 public:
  // `arrays`: of the values, then of each slot.
  DeviceShard(std::unique_ptr<Optimizer> optimizer, DeviceMemory& memory,
              std::vector<std::unique_ptr<DeviceArray>> arrays)
      : optimizer_(std::move(optimizer)), memory_(memory), arrays_(std::move(arrays)) {
    for (size_t slot = 0; slot < slots(); ++slot) {
      slots_.push_back(InPlace(arrays_[slot + 1]->elements()));
    }
  }

  size_t slots() const override { return arrays_.size() - 1; }

  void Update(const UpdateContext& context, std::span<const float> gradient_sum) override {
    const std::span<float> values = arrays_[0]->elements();
    const std::span<float> gradient = memory_.gradient_->elements().first(values.size());
    memory_.device_.CopyIn(gradient_sum, gradient);
    optimizer_->Apply(context, gradient, values, values, slots_);
    is_copied_ = false;
  }

  Buffer Values() override {
    const bool may_be_stale = !copy_.empty() && Planted(PlantedBug::kServeStaleCopy);
    if (is_copied_ || may_be_stale) return copy_;
    // Readers of the older copy keep it.
    if (!copy_.IsUnique()) copy_ = NewArray();
    memory_.device_.CopyOut(arrays_[0]->elements(), copy_.MutableAs<float>());
    is_copied_ = true;
    return copy_;
  }

  Buffer Slot(size_t slot) override {
    Buffer copy = NewArray();
    memory_.device_.CopyOut(slots_[slot].in, copy.MutableAs<float>());
    return copy;
  }

  void Change(size_t array,
              absl::FunctionRef<void(std::span<const float>, std::span<float>)> change) override {
    Buffer copy = NewArray();
    const std::span<float> elements = copy.MutableAs<float>();
    memory_.device_.CopyOut(arrays_[array]->elements(), elements);
    change(elements, elements);
    memory_.device_.CopyIn(elements, arrays_[array]->elements());
    if (array == 0) is_copied_ = false;
  }

  Buffer NewArray() override { return memory_.spares_.Take(bytes()); }
  void Restore(Buffer values, std::vector<Buffer> new_slots) override {
    COVEY_CHECK(values.size() == bytes() && new_slots.size() == slots());
    memory_.device_.CopyIn(values.As<float>(), arrays_[0]->elements());
    for (size_t slot = 0; slot < slots(); ++slot) {
      COVEY_CHECK(new_slots[slot].size() == bytes());
      memory_.device_.CopyIn(new_slots[slot].As<float>(), slots_[slot].out);
    }
    is_copied_ = false;
  }

 private:
  size_t bytes() const { return arrays_[0]->elements().size_bytes(); }

  const std::unique_ptr<Optimizer> optimizer_;
  DeviceMemory& memory_;
  const std::vector<std::unique_ptr<DeviceArray>> arrays_;
  std::vector<SlotSpans> slots_;
  Buffer copy_;             // of the values; empty before the first read
  bool is_copied_ = false;  // copy_ is of the newest values
};

absl::Status DeviceMemory::Reserve(size_t count) {
  if (gradient_ != nullptr && gradient_->elements().size() >= count) return absl::OkStatus();
  COVEY_ASSIGN_OR_RETURN(gradient_, device_.Allocate(count));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShardMemory>> DeviceMemory::Hold(const OptimizerConfig& optimizer,
                                                                Buffer values) {
  auto made = MakeOptimizer(optimizer, device_.kernels());
  if (!made.ok()) {
    return Annotate("this server keeps its tables on a device (--table-memory)", made.status());
  }
  const std::span<const float> elements = values.As<float>();
  COVEY_RETURN_IF_ERROR(Reserve(elements.size()));
  std::vector<std::unique_ptr<DeviceArray>> arrays;
  for (int i = 0; i < 1 + (*made)->state_slots(); ++i) {
    COVEY_ASSIGN_OR_RETURN(auto array, device_.Allocate(elements.size()));
    arrays.push_back(std::move(array));
  }
  device_.CopyIn(elements, arrays[0]->elements());
  const std::vector<float> zeros(elements.size());
  for (size_t i = 1; i < arrays.size(); ++i) device_.CopyIn(zeros, arrays[i]->elements());
  return std::make_unique<DeviceShard>(*std::move(made), *this, std::move(arrays));
}

}  // namespace covey::server

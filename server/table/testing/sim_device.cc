// SPDX-License-Identifier: Apache-2.0
#include "server/table/testing/sim_device.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/base/check.h"

namespace covey::server {
namespace {

// Set in each address of the device. No processor that this project runs on has memory there.
constexpr uintptr_t kDeviceBit = uintptr_t{1} << 55;

template <typename T>
bool IsOnDevice(std::span<T> x) {
  return (reinterpret_cast<uintptr_t>(x.data()) & kDeviceBit) != 0;
}

template <typename T>
std::span<T> Moved(std::span<T> x) {
  return {reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(x.data()) ^ kDeviceBit), x.size()};
}

// Where the elements of the device really are. Other arguments of kernels stay as they are.
template <typename T>
const T& Real(const T& scalars) {
  return scalars;
}
template <typename T>
std::span<T> Real(const std::span<T>& x) {
  COVEY_CHECK(IsOnDevice(x));
  return Moved(x);
}
SlotSpans Real(const SlotSpans& slot) { return {.in = Real(slot.in), .out = Real(slot.out)}; }

template <auto kernel>
struct OnDevice;
template <typename... Args, void (*kernel)(Args...)>
struct OnDevice<kernel> {
  static void Run(Args... args) { kernel(Real(args)...); }
};

constexpr UpdateKernels kKernels = {
    .sgd = OnDevice<UpdateSgd>::Run,
    .momentum = OnDevice<UpdateMomentum>::Run,
    .nesterov = OnDevice<UpdateNesterov>::Run,
    .adagrad = OnDevice<UpdateAdagrad>::Run,
    .adam = OnDevice<UpdateAdam>::Run,
    .hold_delayed_nesterov = OnDevice<HoldDelayedNesterov>::Run,
    .release_delayed_nesterov = OnDevice<ReleaseDelayedNesterov>::Run,
};

class SimArray final : public DeviceArray {
 public:
  SimArray(std::unique_ptr<std::vector<float>> memory, size_t& bytes)
      : DeviceArray(Moved(std::span(*memory))), memory_(std::move(memory)), bytes_(bytes) {
    bytes_ += elements().size_bytes();
  }
  ~SimArray() override { bytes_ -= elements().size_bytes(); }

 private:
  const std::unique_ptr<std::vector<float>> memory_;
  size_t& bytes_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DeviceArray>> SimDevice::Allocate(size_t count) {
  if (count * sizeof(float) > options_.bytes_max - bytes_) {
    return absl::ResourceExhaustedError(
        absl::StrCat("the simulated device has no ", count * sizeof(float), " bytes free"));
  }
  return std::make_unique<SimArray>(
      std::make_unique<std::vector<float>>(count, std::numeric_limits<float>::quiet_NaN()), bytes_);
}

void SimDevice::CopyIn(std::span<const float> host, std::span<float> device) {
  COVEY_CHECK(!IsOnDevice(host) && host.size() == device.size());
  std::copy(host.begin(), host.end(), Real(device).begin());
  ++copies_in_;
  Charge(host.size_bytes());
}

void SimDevice::CopyOut(std::span<const float> device, std::span<float> host) {
  COVEY_CHECK(!IsOnDevice(host) && host.size() == device.size());
  const std::span<const float> real = Real(device);
  std::copy(real.begin(), real.end(), host.begin());
  ++copies_out_;
  Charge(host.size_bytes());
}

const UpdateKernels& SimDevice::kernels() const { return kKernels; }

void SimDevice::Charge(size_t bytes) {
  busy_ += options_.copy_start + options_.copy_byte * static_cast<int64_t>(bytes);
}

}  // namespace covey::server

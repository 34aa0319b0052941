// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/optimizer/update_kernels.h"
#include "server/table/device.h"

namespace covey::server {

// A device without hardware. The addresses of its arrays lie where the processor has no memory, so
// code that reads or writes them itself crashes, and host memory that is given to the device as its
// own fails a check. A new array holds NaN until it is written.
//
// Actor-confined. Deterministic.
class SimDevice final : public Device {
 public:
  struct Options {
    size_t bytes_max = std::numeric_limits<size_t>::max();
    // The duration of a copy: its start, and each byte.
    absl::Duration copy_start = absl::ZeroDuration();
    absl::Duration copy_byte = absl::ZeroDuration();
  };

  explicit SimDevice(const Options& options) : options_(options) {}
  SimDevice() : SimDevice(Options()) {}

  absl::StatusOr<std::unique_ptr<DeviceArray>> Allocate(size_t count) override;
  void CopyIn(std::span<const float> host, std::span<float> device) override;
  void CopyOut(std::span<const float> device, std::span<float> host) override;
  const UpdateKernels& kernels() const override;

  // How long its copies took since the last call. The kernels count as nothing.
  absl::Duration TakeBusyTime() { return std::exchange(busy_, absl::ZeroDuration()); }
  size_t bytes() const { return bytes_; }
  size_t copies_in() const { return copies_in_; }
  size_t copies_out() const { return copies_out_; }

 private:
  void Charge(size_t bytes);

  const Options options_;
  absl::Duration busy_;
  size_t bytes_ = 0;
  size_t copies_in_ = 0;
  size_t copies_out_ = 0;
};

}  // namespace covey::server

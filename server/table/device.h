// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/optimizer/update_kernels.h"

namespace covey::server {

// An array in the memory of a device, which the processor cannot read or write. Owns it.
class DeviceArray {
 public:
  explicit DeviceArray(std::span<float> elements) : elements_(elements) {}
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;
  virtual ~DeviceArray() = default;

  // For the device's copies and kernels only.
  std::span<float> elements() const { return elements_; }

 private:
  const std::span<float> elements_;
};

// A processor with memory of its own, such as a GPU. It does what it is asked in the order of the
// calls, and may do so after they have returned; CopyOut returns only when all of it is done.
//
// A device that fails has lost its memory, and no call reports that: the process ends instead, with
// a line in its log, and the replicas of its shards take over as after any other death of a server.
//
// Actor-confined; the arrays, too. Outlives its arrays.
class Device {
 public:
  virtual ~Device() = default;

  // RESOURCE_EXHAUSTED: the device has too little memory free. The elements are unspecified.
  virtual absl::StatusOr<std::unique_ptr<DeviceArray>> Allocate(size_t count) = 0;
  // Preconditions: equal sizes. The host's elements may change after the call.
  virtual void CopyIn(std::span<const float> host, std::span<float> device) = 0;
  virtual void CopyOut(std::span<const float> device, std::span<float> host) = 0;
  // The kernels over its memory, same bits as kHostKernels. Valid as long as the device.
  virtual const UpdateKernels& kernels() const = 0;
};

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace covey::gpu {

// The memory that the kernels of kernels.h work on, and how to wait for them.
//
// The GPU does the work of one thread in the order of its calls, after each call has returned. The
// work of two threads is done in any order, or at the same time.

// False without a GPU, without its driver, or with one too old for this program.
bool IsPresent();

// Returns when the GPU has done all work of this thread. INTERNAL with the driver's message if any
// of it failed since the last call that returned a status.
absl::Status Wait();

// Copies from the GPU after all work of this thread so far; waits for that work. INTERNAL as
// Wait(). Precondition: equal sizes.
absl::Status CopyOut(std::span<const float> gpu, std::span<float> host);

// An array of floats in the memory of the GPU, which it owns. May be used by any one thread at a
// time; hand it to another only after Wait(). Its destructor waits for the GPU.
class Floats {
 public:
  // Uninitialized. RESOURCE_EXHAUSTED when the GPU has too little memory free, INTERNAL when it
  // fails.
  static absl::StatusOr<Floats> Allocate(size_t size);
  // Errors as Allocate().
  static absl::StatusOr<Floats> CopyOf(std::span<const float> values);

  // For the kernels only: the processor cannot read or write there.
  std::span<float> span() { return {memory_.get(), size_}; }

  // As CopyOut().
  absl::StatusOr<std::vector<float>> CopyBack() const;

 private:
  struct Release {
    void operator()(float* memory) const;
  };
  Floats(float* memory, size_t size) : memory_(memory), size_(size) {}

  std::unique_ptr<float[], Release> memory_;  // null when size_ is 0
  size_t size_;
};

}  // namespace covey::gpu

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey::cli {

// Arrays of floats that are all 1, one behind the other, on huge pages where the system grants them
// on request. Pages exist from the start.
class ArrayMemory {
 public:
  // Precondition: `bytes` is a multiple of 4096.
  ArrayMemory(uint64_t bytes, uint32_t arrays);
  ~ArrayMemory();
  ArrayMemory(const ArrayMemory&) = delete;
  ArrayMemory& operator=(const ArrayMemory&) = delete;

  std::span<float> array(uint32_t index) const;

 private:
  const uint64_t bytes_;
  const uint32_t arrays_;
  float* memory_ = nullptr;
};

}  // namespace covey::cli

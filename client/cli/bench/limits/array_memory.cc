// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/array_memory.h"

#include <sys/mman.h>

#include <algorithm>

#include "common/base/check.h"

namespace covey::cli {

ArrayMemory::ArrayMemory(uint64_t bytes, uint32_t arrays) : bytes_(bytes), arrays_(arrays) {
  void* memory =
      mmap(nullptr, bytes_ * arrays_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  COVEY_CHECK(memory != MAP_FAILED);
  madvise(memory, bytes_ * arrays_, MADV_HUGEPAGE);
  memory_ = static_cast<float*>(memory);
  std::fill_n(memory_, bytes_ * arrays_ / sizeof(float), 1.0f);
}

ArrayMemory::~ArrayMemory() { munmap(memory_, bytes_ * arrays_); }

std::span<float> ArrayMemory::array(uint32_t index) const {
  COVEY_CHECK(index < arrays_);
  const uint64_t floats = bytes_ / sizeof(float);
  return {memory_ + index * floats, floats};
}

}  // namespace covey::cli

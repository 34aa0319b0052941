// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/limits/limit_load.h"

#include <cstring>

namespace covey::cli {

std::vector<LaneMemory> MakeLanes(uint64_t bytes, size_t lanes) {
  std::vector<LaneMemory> memory(lanes);
  for (size_t lane = 0; lane < lanes; ++lane) {
    memory[lane].assign(bytes, static_cast<uint8_t>(lane + 1));
  }
  return memory;
}

uint64_t ReadThrough(const uint8_t* bytes, size_t size) {
  uint64_t sum = 0;
  size_t position = 0;
  for (; position + sizeof(uint64_t) <= size; position += sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes + position, sizeof(word));
    sum += word;
  }
  for (; position < size; ++position) sum += bytes[position];
  return sum;
}

}  // namespace covey::cli

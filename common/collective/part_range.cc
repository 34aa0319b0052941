// SPDX-License-Identifier: Apache-2.0
#include "common/collective/part_range.h"

namespace covey {

std::vector<PartRange> EvenParts(size_t element_count, uint32_t size) {
  std::vector<PartRange> parts(size);
  const size_t quotient = element_count / size;
  const size_t remainder = element_count % size;
  size_t first = 0;
  for (uint32_t i = 0; i < size; ++i) {
    parts[i] = {.first = first, .count = quotient + (i < remainder ? 1 : 0)};
    first += parts[i].count;
  }
  return parts;
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace covey {

// Elements [first, first + count) of a tensor.
struct PartRange {
  size_t first = 0;
  size_t count = 0;

  friend bool operator==(const PartRange&, const PartRange&) = default;
};

// Cuts `element_count` elements into `size` parts, in order, that differ by at most one element.
std::vector<PartRange> EvenParts(size_t element_count, uint32_t size);

}  // namespace covey

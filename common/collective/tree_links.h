// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace covey {

// The links of one member in a tree that is used in both directions: its sums are taken from the
// leaves to the root, and the values spread from the root in the reverse order. A value.
struct TreeLinks {
  std::optional<uint32_t> parent;  // none: the root
  // In the order of summation, after the member's own values.
  std::vector<uint32_t> children;
};

}  // namespace covey

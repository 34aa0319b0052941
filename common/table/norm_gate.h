// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace covey {

// Which pushes are too large to be applied: NormGate of table.proto.
struct NormGateRules {
  double factor = 0;
  uint32_t quarantine_after = 0;  // 0 = never
};

}  // namespace covey

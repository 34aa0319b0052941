// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "common/collective/algorithm.h"

namespace covey::worker {

// How the tensors of a step travel through the group; the same on all members. A value.
struct StepRoute {
  Algorithm algorithm = Algorithm::kAutomatic;
  // As Collective.slice_bytes.
  size_t slice_bytes = 0;

  friend bool operator==(const StepRoute&, const StepRoute&) = default;
};

}  // namespace covey::worker

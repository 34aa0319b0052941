// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace covey::sim {

// What all trainers of the work workload do.
struct WorkPlan {
  uint64_t examples = 0;
  uint64_t item_examples = 0;
  uint64_t passes = 0;
  uint64_t seed = 0;
  // The longest time that an item takes; set before the cluster starts.
  absl::Duration think_max;
};

// What they have done, all together.
struct WorkProgress {
  uint64_t told_done = 0;
  uint64_t trained = 0;  // items
};

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "proto/scheduler.pb.h"

namespace covey::sim {

// What all trainers of the work workload do.
struct WorkPlan {
  uint64_t examples = 0;
  uint64_t item_examples = 0;
  uint64_t passes = 0;
  uint64_t seed = 0;
  // Workers return what the scheduler recalls, and some of them are slow.
  bool recalls = false;
  // The longest time that an item takes; set before the cluster starts.
  absl::Duration think_max;

  // How many times as long as others a worker takes.
  double DrawSlowness(Random& random) const { return recalls && random.Chance(0.4) ? 10 : 1; }
  // That tells nothing but the data set.
  proto::WorkRequest Request() const {
    proto::WorkRequest request;
    request.set_name("examples");
    request.set_examples(examples);
    request.set_item_examples(item_examples);
    request.set_passes(passes);
    request.set_seed(seed);
    return request;
  }
};

// What they have done, all together.
struct WorkProgress {
  uint64_t told_done = 0;
  // Items.
  uint64_t trained = 0;
  uint64_t recalled = 0;
};

}  // namespace covey::sim

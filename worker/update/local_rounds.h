// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "common/cluster/ids.h"

namespace covey::worker {

// How the rounds of a LOCAL tensor follow from the group's steps.
struct LocalRounds {
  // Steps per round, at least 1; and the steps after a round's end before the group adopts the
  // outer values, fewer than `steps`.
  uint64_t steps = 1;
  uint64_t overlap = 0;
  // Ends of rounds come this many steps earlier, so that tensors take turns (Douillard et al. 2025,
  // Streaming DiLoCo); less than `steps`. The first round is shorter by that number.
  uint64_t offset = 0;

  // A round ends with steps `steps` - offset, 2 * `steps` - offset, ...
  bool EndsWith(Step step) const { return (step.value() + offset) % steps == 0; }
  // The number of rounds that ended at `step` or before.
  uint64_t RoundsAt(Step step) const { return (step.value() + offset) / steps; }

  // An even distribution of the turns: tensor t of n.
  static uint64_t OffsetOf(size_t tensor, size_t tensors, uint64_t steps) {
    return tensor * steps / tensors;
  }
};

}  // namespace covey::worker

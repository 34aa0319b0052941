// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_momentum.h"

namespace covey::sim {

std::optional<uint64_t> UpdatesSince(float value) {
  float sum = 0;
  float velocity = 1;
  for (uint64_t updates = 0; updates <= kUpdatesUntilTwo; ++updates) {
    sum += velocity;
    if (sum == value) return updates;
    velocity *= static_cast<float>(kMomentumOfTable);
  }
  return std::nullopt;
}

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/grouping/stragglers/worker_pace.h"

namespace covey {

// How fast a group is, computed from the paces of its members, all of which are known. Pure.

// The median; of an even number the lower one, so that two members are compared with the faster
// one.
double MedianPace(const std::vector<const WorkerPace*>& members);
double MedianStepSeconds(const std::vector<const WorkerPace*>& members);

struct GroupEfficiency {
  // Samples per second that the group makes over those that its members could make, each at its own
  // speed: 1 when all finish together.
  double part = 1;
  // Index of the member that the others wait for.
  size_t slowest = 0;
  double slowest_step_seconds = 0;
  // Throughput without that member over throughput with it.
  double gain_without_slowest = 1;
};
GroupEfficiency EfficiencyOf(const std::vector<const WorkerPace*>& members);

// Shares in proportion to speed, none below `share_min` of an even share; 1000 = even. Their sum is
// arbitrary.
std::vector<uint32_t> SharesBySpeed(const std::vector<const WorkerPace*>& members,
                                    double share_min);

}  // namespace covey

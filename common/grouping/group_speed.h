// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/grouping/member_pace.h"

namespace covey {

// How fast a group is, from the paces of its members, all of them known. Pure.

// Of an even number the lower one, so that of two members the faster one is the measure.
double MedianPace(const std::vector<const MemberPace*>& members);
double MedianStepSeconds(const std::vector<const MemberPace*>& members);

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
GroupEfficiency EfficiencyOf(const std::vector<const MemberPace*>& members);

// Shares in proportion to speed, none below `share_min` of an even one; 1000 = even. They need not
// add up to anything.
std::vector<uint32_t> SharesBySpeed(const std::vector<const MemberPace*>& members,
                                    double share_min);

}  // namespace covey

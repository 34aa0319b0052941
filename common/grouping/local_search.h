// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "common/grouping/partition_candidates.h"
#include "common/grouping/throughput_model.h"

namespace covey {

// Sum of the groups' samples per second times the statistical factor and the fit: 0 without groups.
double ValueOf(const ThroughputModel& throughput, const std::vector<GroupMembers>& groups);

struct ImproveOptions {
  // Sizes stay the same: workers only change places.
  bool keep_sizes = false;
  size_t members_max = 0;
  // Examines at most this many members in all; bounds the time.
  size_t effort = 2'000'000;
};
// Moves and swaps single workers between groups while the value grows, beginning with those that
// are farthest from the typical speed of their group. Does not change the number of groups. Does
// nothing where groups are in step: there the slowest counts, and single changes seldom mend it.
void ImproveGroups(const ThroughputModel& throughput, const ImproveOptions& options,
                   std::vector<GroupMembers>& groups);

}  // namespace covey

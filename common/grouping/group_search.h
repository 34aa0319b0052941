// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/grouping/group_rate.h"

namespace covey {

// Workers of one group, by growing number of the rater.
using GroupMembers = std::vector<uint32_t>;

// The order in which workers are lined up before they are cut into groups.
enum class GroupOrder {
  kTopology,      // hosts first, then racks, then zones
  kRackAndSpeed,  // racks first, the fastest ahead inside them
  kSpeed,         // workers of about the same speed first, then the topology
};

// Cuts all workers into `groups` groups whose sizes differ by at most one, whole groups out of the
// narrowest domains first, then out of the remaining workers of wider ones. Precondition: groups is
// 1 .. workers.
std::vector<GroupMembers> CutGroups(const GroupRater& rater, GroupOrder order, size_t groups);
// The same for each class of about equal speed separately, and in a class for each rack if there
// are enough groups. Groups are divided in proportion, so sizes may differ. Empty when there are
// more classes than groups.
std::vector<GroupMembers> CutClasses(const GroupRater& rater, size_t groups);
size_t CountSpeedClasses(const GroupRater& rater);
// In an order that depends only on `seed`.
std::vector<GroupMembers> CutAtRandom(const GroupRater& rater, uint64_t seed, size_t groups);

// Sum of the groups' samples per second times the statistical factor.
double ValueOf(const GroupRater& rater, const std::vector<GroupMembers>& groups);

struct ImproveOptions {
  // Sizes stay the same: workers only change places.
  bool keep_sizes = false;
  size_t members_max = 0;
  // Examines at most this many members in all; bounds the time.
  size_t effort = 2'000'000;
};
// Moves and swaps single workers between groups while the value grows, beginning with those that
// are farthest from the typical speed of their group. Does not change the number of groups.
void ImproveGroups(const GroupRater& rater, const ImproveOptions& options,
                   std::vector<GroupMembers>& groups);

}  // namespace covey

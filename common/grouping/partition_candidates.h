// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "common/grouping/throughput_model.h"

namespace covey {

// Workers of one group, by growing number in the model.
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
std::vector<GroupMembers> CutGroups(const ThroughputModel& throughput, GroupOrder order,
                                    size_t groups);
// The same for each class of about equal speed separately, and in a class for each rack if there
// are enough groups. Groups are divided in proportion, so sizes may differ. Empty when there are
// more classes than groups.
std::vector<GroupMembers> CutClasses(const ThroughputModel& throughput, size_t groups);
size_t CountSpeedClasses(const ThroughputModel& throughput);
// In an order that depends only on `seed`.
std::vector<GroupMembers> CutAtRandom(const ThroughputModel& throughput, uint64_t seed,
                                      size_t groups);

}  // namespace covey

#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/cluster/ids.h"
#include "common/grouping/group_planner.h"

namespace covey::scheduler {

// Where workers go that have no group although there are groups: late ones, and those that come
// back. Pure.

// A group that takes workers in.
struct OpenGroup {
  GroupId id;
  // Labels of its members.
  std::vector<std::string> labels;
};

struct LateWorker {
  PlannedWorker worker;
  // It has waited long enough for others to make a group with.
  bool has_waited = false;
};

struct Placement {
  std::map<GroupId, std::vector<NodeId>> additions;
  // Each of the wanted size.
  std::vector<std::vector<NodeId>> new_groups;
};

// In this order: fills groups of fewer than `group_members` workers, the nearest by labels first;
// makes new groups of `group_members`, if allowed; adds who has waited to the smallest group, of
// equal ones the nearest. Others go on waiting. `late` is in the order of preference.
struct PlacementRules {
  uint32_t group_members = 1;
  bool may_make_groups = true;
};
Placement PlaceLateWorkers(const PlacementRules& rules, std::vector<OpenGroup> groups,
                           std::vector<LateWorker> late);

}  // namespace covey::scheduler

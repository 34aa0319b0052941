// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/cluster/ids.h"
#include "common/grouping/group_planner.h"

namespace covey::scheduler {

// Which groups late workers join. Pure.

// A group that may get more members.
struct OpenGroup {
  GroupId id;
  // Labels of its members.
  std::vector<std::string> labels;
};

struct LateWorker {
  PlannedWorker worker;
  // It has waited for GroupsOptions::placement_wait.
  bool has_waited = false;
};

struct Placement {
  std::map<GroupId, std::vector<NodeId>> additions;
  // Each has the wanted size.
  std::vector<std::vector<NodeId>> new_groups;
};

// In this order:
//  1. Groups of fewer than `group_members` workers are filled, the nearest by labels first.
//  2. New groups of `group_members` are made, if allowed.
//  3. Each worker that has waited joins the smallest group; of equal ones, the nearest.
// Other workers go on waiting. `late` is in the order of preference.
struct PlacementRules {
  uint32_t group_members = 1;
  bool may_make_groups = true;
};
Placement PlaceLateWorkers(const PlacementRules& rules, std::vector<OpenGroup> groups,
                           std::vector<LateWorker> late);

}  // namespace covey::scheduler

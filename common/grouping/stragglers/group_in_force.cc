// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/group_in_force.h"

#include <algorithm>

#include "common/cluster/limits.h"

namespace covey {

bool HasRoom(const GroupInForce& group) { return group.members.size() < kGroupMembersMax; }

const GroupInForce* FindGroup(GroupId id, const std::vector<GroupInForce>& groups) {
  const auto found = std::find_if(groups.begin(), groups.end(),
                                  [id](const GroupInForce& group) { return group.id == id; });
  return found == groups.end() ? nullptr : &*found;
}

}  // namespace covey

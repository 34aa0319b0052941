// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/ids.h"

namespace covey {

// A member of a group, or a worker that was evicted from one.
struct GroupMember {
  NodeId node;
  std::string name;
  // The group that it was evicted from; 0 = none.
  GroupId home = GroupId();
};

// A group as the view has it, with the measures in force. A value.
struct GroupInForce {
  GroupId id;
  uint64_t generation = 0;
  std::vector<GroupMember> members;
  std::vector<uint32_t> shares = {};  // empty = even
  uint32_t minimum_members = 0;       // 0 = all members are waited for
};

// Whether one more worker may become a member.
bool HasRoom(const GroupInForce& group);
// Null when `groups` do not contain it.
const GroupInForce* FindGroup(GroupId id, const std::vector<GroupInForce>& groups);

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/ended_groups.h"

#include <algorithm>

namespace covey::scheduler {

std::vector<GroupId> ForgettableGroups(const proto::ClusterView& view) {
  std::vector<GroupId> ended;
  for (const proto::Group& group : view.groups()) {
    if (group.state() != proto::Group::ACTIVE) ended.push_back(GroupId(group.id()));
  }
  ended.resize(ended.size() - std::min(ended.size(), kEndedGroupsKept));
  if (ended.empty()) return ended;
  for (const proto::Group& group : view.groups()) {
    if (group.first_step() == view.groups(0).first_step()) {
      std::erase(ended, GroupId(group.id()));
    }
  }
  for (const proto::CutStep& cut : view.snapshot().groups()) {
    std::erase(ended, GroupId(cut.group()));
  }
  return ended;
}

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "scheduler/groups/groups.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// The changes of groups that the straggler ladder asks for. Each is a transaction of its own. An
// outdated change, for example because the group has ended, has no effect. `evidence` is for users.
//
//                            Evict
//   member of its home group ─────▶ in no group: it stays ALIVE and is not placed
//      │        ▲   ▲                     │
//      │ Move   │   └──────── Move ───────┘
//      ▼        │ Move
//   member of another group
//
// Actor-confined, deterministic. `state` and `groups` outlive it.
class GroupAdjustments {
 public:
  GroupAdjustments(ClusterState& state, Groups& groups) : state_(state), groups_(groups) {}

  // Takes a worker out of its group, if it has one, and puts it into `to`. Where `to` is 0, is full
  // or has ended, the worker is placed like a late one. The first group that it leaves is its home,
  // to which it may return.
  void Move(absl::Time now, NodeId worker, GroupId to, const std::string& evidence);
  void Evict(NodeId worker, const std::string& evidence);
  // How a group divides its samples; empty = evenly.
  void SetShares(GroupId group, const std::vector<uint32_t>& shares, const std::string& evidence);
  // Partial reduce; 0 = all members are waited for.
  void SetMinimumMembers(GroupId group, uint32_t minimum, absl::Duration grace,
                         const std::string& evidence);

 private:
  // Null when the group is not ACTIVE.
  const proto::Group* FindActive(GroupId id) const;

  ClusterState& state_;
  Groups& groups_;
};

}  // namespace covey::scheduler

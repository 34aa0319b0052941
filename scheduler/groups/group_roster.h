// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/view.pb.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// How many workers changed from one group to another, and how many were in no group before.
struct Regrouped {
  size_t moved = 0;
  size_t placed = 0;
};

// The members of each group, and how far they have come. The only place where members are written.
//
// A worker that is added to a running group is a newcomer until it reports a finished step: perhaps
// it was in no generation that ran, so it may not know which step the group has reached.
//
// Actor-confined, deterministic. `state` outlives it. Reports of workers are lost at a restart of
// the scheduler.
class GroupRoster {
 public:
  explicit GroupRoster(const ClusterState& state) : state_(state) {}

  // A worker's heartbeat: it has finished `step`.
  void OnProgress(NodeId worker, uint64_t step);
  // A worker is no longer ALIVE. True: it was a newcomer.
  bool OnDeparture(NodeId worker);

  // A new ACTIVE group of ALIVE workers, of generation 1. Takes groups out of the view that ended
  // long ago, so references to groups from before are not valid any more.
  const proto::Group& AddGroup(const std::vector<NodeId>& members, Transaction& change);
  // Gives an ACTIVE group the ALIVE ones of `members`, in the order of the topology, and a new
  // generation, which starts without shares and partial reduce. When no member is left, or only
  // newcomers are, the group is DONE, and the newcomers are in no group.
  void SetMembers(const proto::Group& group, const std::vector<NodeId>& members,
                  Transaction& change);
  // The same, with `workers` added as newcomers.
  void AddNewcomers(const proto::Group& group, const std::vector<NodeId>& workers,
                    Transaction& change);
  // Moves a worker into a group that may have run with it before; so the worker is not a newcomer.
  void AddMember(const proto::Group& group, NodeId worker, Transaction& change);
  // Makes these the groups: each takes over the present ACTIVE group with which it has most members
  // in common, and gives it a new generation if its members differ; the others are new groups, and
  // present ones that are left over are DONE. Contracts wait for new groups from the step after
  // highest_step() on. A worker that was in no group is a newcomer among members that were.
  // Precondition: `planned` has each ALIVE member of an ACTIVE group once.
  Regrouped Regroup(const std::vector<std::vector<NodeId>>& planned, Transaction& change);
  // Takes a worker out of its ACTIVE group and returns that group; 0 = none.
  GroupId TakeOut(NodeId worker, Transaction& change);

  // The highest step that any worker has reported.
  uint64_t highest_step() const { return highest_step_; }
  // Whether at least one member of each ACTIVE group has reported since this object was made.
  bool KnowsSteps() const;

 private:
  // For each of `planned` the present group that it takes over; 0 = none.
  std::vector<GroupId> Successors(const std::vector<std::vector<NodeId>>& planned) const;

  const ClusterState& state_;
  uint64_t highest_step_ = 0;
  std::set<NodeId> heard_;
  std::set<NodeId> newcomers_;
};

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/cluster/ids.h"
#include "proto/scheduler.pb.h"
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
// A worker that is added to a running group is a newcomer until its reports show that the group has
// taken it along: until then it may not know which step the group has reached.
//
// Actor-confined, deterministic. `state` outlives it. Reports of workers are lost at a restart of
// the scheduler.
class GroupRoster {
 public:
  explicit GroupRoster(const ClusterState& state) : state_(state) {}

  // What a worker's newest heartbeat tells.
  void OnProgress(NodeId worker, const proto::Progress& progress);
  // A worker is no longer ALIVE. True: it was a newcomer.
  bool OnDeparture(NodeId worker);

  // The groups that the job begins with, of ALIVE workers: ACTIVE, of generation 1. They begin with
  // the same step, the first one that the job has not finished yet. Precondition: there are none.
  void AddFirstGroups(const std::vector<std::vector<NodeId>>& planned, Transaction& change);
  // A new ACTIVE group of ALIVE workers, of generation 1, for which contracts wait from the step
  // after highest_step() on. Takes groups out of the view that ended long ago, so references to
  // groups from before are not valid any more.
  const proto::Group& AddGroup(const std::vector<NodeId>& members, Transaction& change);
  // Gives an ACTIVE group the ALIVE ones of `members`, in the order of the topology, and a new
  // generation, which starts without shares and partial reduce. When no member is left, or only
  // newcomers are, the group is DONE, which is an event, and the newcomers are in no group. Returns
  // whether the group goes on.
  bool SetMembers(const proto::Group& group, const std::vector<NodeId>& members,
                  Transaction& change);
  // The same, with `workers` added as newcomers.
  void AddNewcomers(const proto::Group& group, const std::vector<NodeId>& workers,
                    Transaction& change);
  // Moves a worker into a group that may have run with it before; so the worker is not a newcomer.
  // Precondition: the group has room for it (kGroupMembersMax).
  void AddMember(const proto::Group& group, NodeId worker, Transaction& change);
  // Makes these the groups: each takes over the present ACTIVE group with which it has most members
  // in common, and gives it a new generation if its members differ; the others are new groups, and
  // present ones that are left over are DONE. A worker that was in no group is a newcomer in a
  // group that goes on. Precondition: `planned` has each ALIVE member of an ACTIVE group once.
  Regrouped Regroup(const std::vector<std::vector<NodeId>>& planned, Transaction& change);
  // Takes a worker out of its ACTIVE group, which may end that group, as in SetMembers. Returns the
  // group; 0 = the worker was in none.
  GroupId TakeOut(NodeId worker, Transaction& change);

  // The highest step that any worker has reported: of its group, or of its own where it does not
  // tell its group's.
  uint64_t highest_step() const { return highest_step_; }
  // Whether at least one member of each ACTIVE group has reported since this object was made.
  bool KnowsSteps() const;

 private:
  // A worker that was added to a running group.
  struct Newcomer {
    GroupId group;
    // The step in its first report as a member. Until it has met the others, it reports the step
    // with which it came; so a report of another step shows that it has met them.
    std::optional<uint64_t> step = {};
  };

  bool IsNewcomer(NodeId worker) const { return newcomers_.count(worker) > 0; }
  // As AddGroup, with this Group.first_step.
  const proto::Group& Append(const std::vector<NodeId>& members, uint64_t first_step,
                             Transaction& change);
  // For each of `planned` the present group that it takes over; 0 = none.
  std::vector<GroupId> Successors(const std::vector<std::vector<NodeId>>& planned) const;

  const ClusterState& state_;
  uint64_t highest_step_ = 0;
  std::set<NodeId> heard_;
  std::map<NodeId, Newcomer> newcomers_;
};

}  // namespace covey::scheduler

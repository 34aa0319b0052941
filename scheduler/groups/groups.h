#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "proto/log.pb.h"
#include "scheduler/config.h"

namespace covey::scheduler {

// Which workers synchronise with each other.
//
//             ┌── the last one dies ─▶ BROKEN
//   ACTIVE ───┤
//    │  ▲     └── all have left ─────▶ DONE
//    └──┘ other members: generation + 1
//
// Groups form when every expected server and worker is ALIVE. Later workers (Config::elastic) are
// placed: see late_workers.h. A group re-forms, with a new generation and nothing shared from the
// old one (shares, partial reduce), when workers join it, are moved out of it, or have left it in
// order while the others go on. "Go on" is not known at once, since at the end of training all
// leave, one after the other: a group is left as it is until `Config::regroup_after` has passed
// since the first member left. A group that is done by then never re-forms; one whose last members
// linger re-forms without harm, because members act on a new generation only at their next step.
//
// When a member dies, the group goes on without it at once: the survivors leave their step where it
// is and do it again (Group.recovery_generation). One that was added later and has not finished a
// step yet may be in no generation that ran: then the plan alone changes, and members that have been
// in one with it notice by themselves.
//
// A worker that drains is planned out of its group, and stays ALIVE until it leaves. The only member
// of a group stays in it; it leaves by itself.
//
// Invariants:
//  1. An ALIVE worker is in at most one group, and in none that is not ACTIVE unless it was when
//     that ended.
//  2. A group that has ended never becomes ACTIVE again; ids are never reused.
//  3. Contracts wait for a new group only from the step on that comes after the highest one that
//     any worker has reported (Group.first_step).
//
// Edits the view in `state`, which outlives it. Actor-confined, deterministic.
class Groups {
 public:
  // A change, for people: what and on what evidence. "" = nothing has changed.
  using Decision = std::string;

  Groups(const Config& config, proto::LogRecord& state) : config_(config), state_(state) {}

  // A worker was heard, and has finished `step`.
  void Hear(NodeId worker, uint64_t step);

  // The next three are part of a change of membership, and raise no epoch themselves.
  //
  // Groups of a new worker: the first ones, when everyone is here; its place in them.
  Decision Joined(absl::Time now);
  // A worker is no longer ALIVE; what this means for its group.
  Decision Departed(absl::Time now, const proto::Node& node);
  // "Waiting for", in the view.
  void NoteMissing();

  // The following raise the epoch by one when they change something.
  //
  // What time brings: places late workers, re-forms groups that members have left. To be called
  // every half second or so.
  Decision Tick(absl::Time now);
  // Takes a worker out of its group, if it has one, and puts it into `to`; 0 or a group that has
  // ended = it is placed like a late one. The group it leaves is where it goes back to.
  Decision Move(absl::Time now, NodeId worker, GroupId to, const std::string& evidence);
  // Takes a worker out of its group; it stays ALIVE and is not placed before a Move.
  Decision Evict(NodeId worker, const std::string& evidence);
  // Takes a worker that drains out of its group, which goes on after its next step. Part of a change
  // of membership: raises no epoch.
  Decision Drain(NodeId worker);
  Decision SetShares(GroupId group, const std::vector<uint32_t>& shares,
                     const std::string& evidence);
  // 0 = everybody is waited for.
  Decision SetMinimumMembers(GroupId group, uint32_t minimum, absl::Duration grace,
                             const std::string& evidence);

 private:
  Decision FormFirst();
  // Moves late workers into groups, and groups on; for Joined and Tick.
  Decision Place(absl::Time now);
  std::vector<Decision> Reform(absl::Time now);
  proto::Group& AddGroup(const std::vector<NodeId>& members);
  // Those of `members` that are ALIVE, in the order of the topology; new generation. DONE without
  // any.
  void SetMembers(proto::Group& group, const std::vector<NodeId>& members);
  // Takes a worker out of the ACTIVE group it is in; 0 = none.
  GroupId TakeOut(NodeId worker);
  proto::Group* Find(GroupId id);
  // Null when it is not ACTIVE.
  proto::Group* FindActive(GroupId id);
  proto::Group* ActiveGroupOf(NodeId worker);
  // "worker-1, worker-3".
  std::string NamesOf(const std::vector<NodeId>& nodes) const;
  // Some member of each ACTIVE group was heard since this object began.
  bool KnowsSteps() const;

  const Config& config_;
  proto::LogRecord& state_;
  uint64_t highest_step_ = 0;
  std::set<NodeId> heard_;
  // Added to groups that ran, and not heard since with a step that they have finished.
  std::set<NodeId> newcomers_;
  std::map<NodeId, absl::Time> late_since_;
  std::map<GroupId, absl::Time> left_since_;
};

}  // namespace covey::scheduler

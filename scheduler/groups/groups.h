// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <utility>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "scheduler/groups/away_workers.h"
#include "scheduler/groups/group_roster.h"
#include "scheduler/groups/groups_options.h"
#include "scheduler/groups/late_placement.h"
#include "scheduler/state/cluster_state.h"
#include "scheduler/topology/topology_survey.h"

namespace covey::scheduler {

// The life of groups: which workers synchronize with each other.
//
//     every expected server and worker is ALIVE, and where they are is known (TopologySurvey)
//                                  │
//                                  ▼
//     other members: ┌────────▶ ACTIVE ──── the last member dies ────────────────▶ BROKEN
//     generation + 1 └────────────┘ └────── all members have left, only newcomers ──▶ DONE
//                                           are left, or all are planned elsewhere
//
// A group re-forms, with a new generation, when workers join it, are moved out of it, drain, die,
// or have left it in order while the others go on:
//
//  - Left in order: at the end of training all members leave, one after the other. So a group stays
//    as it is until GroupsOptions::regroup_after has passed since its first member left. A group
//    that is done by then never re-forms. A group whose last members linger re-forms without harm,
//    since members act on a new generation only at their next step.
//  - Died: the group goes on at once. The survivors abandon their step and repeat it
//    (Group.recovery_generation). The death of a newcomer (GroupRoster) does not interrupt a step.
//  - Drains: the worker is planned out of its group and stays ALIVE until it leaves. The only
//    member of a group stays in it until then.
//
// Invariants:
//  1. An ALIVE worker is in at most one ACTIVE group. It is also listed in each group of which it
//     was a member when that group ended.
//  2. A group that has ended never becomes ACTIVE again; ids are never reused.
//  3. Contracts wait for a new group only from the step after the highest step that any group is
//     known to have finished (Group.first_step).
//
// Actor-confined, deterministic. The constructor's references and `survey` outlive it.
class Groups {
 public:
  // `survey`: null = where workers are is not measured.
  Groups(const GroupsOptions& options, ClusterState& state, const AwayWorkers& away,
         const TopologySurvey* survey = nullptr)
      : options_(options),
        state_(state),
        survey_(survey),
        roster_(state),
        late_(options, state, away, roster_) {}

  // From the next call on.
  void SetOptions(const GroupsOptions& options) {
    options_ = options;
    late_.SetOptions(options);
  }

  GroupRoster& roster() { return roster_; }
  LatePlacement& late_placement() { return late_; }

  // OnRegistered, OnDeparture and OnDrain are parts of a change of membership.
  //
  // A node has registered: the first groups form, or a late worker is placed.
  void OnRegistered(absl::Time now, Transaction& change);
  // A node is no longer ALIVE.
  void OnDeparture(absl::Time now, const proto::Node& node, Transaction& change);
  // A worker drains: takes it out of its group, which goes on after its next step.
  void OnDrain(NodeId worker, Transaction& change);

  // Forms the first groups, re-forms groups that members have left, and places late workers. To be
  // called about every half second.
  void Tick(absl::Time now);

 private:
  void UpdateWaitingFor(Transaction& change);
  void FormFirst(absl::Time now, Transaction& change);
  void OnMemberLeft(absl::Time now, const proto::Group& group, bool all_left, Transaction& change);
  void OnMemberDied(const proto::Group& group, const proto::Node& dead, bool was_newcomer,
                    Transaction& change);
  void Reform(absl::Time now, Transaction& change);

  GroupsOptions options_;
  ClusterState& state_;
  const TopologySurvey* const survey_;
  GroupRoster roster_;
  LatePlacement late_;
  // When the first member of this generation of a group left.
  std::map<std::pair<GroupId, uint64_t>, absl::Time> left_since_;
};

}  // namespace covey::scheduler

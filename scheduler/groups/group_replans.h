// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/grouping/group_planner.h"
#include "common/grouping/plan_inputs.h"
#include "proto/scheduler.pb.h"
#include "scheduler/groups/away_workers.h"
#include "scheduler/groups/group_experience.h"
#include "scheduler/groups/group_roster.h"
#include "scheduler/groups/plan_measurements.h"
#include "scheduler/state/cluster_state.h"

namespace covey::scheduler {

// Plans the groups of a job with JobSpec::plans_groups while it runs, once its first groups have
// formed:
//
//   workers without a group    join where they fit best, kPlaceAfter after the first of them came
//   there is a table, and      other groups form if they make more progress, and still do so
//   all workers are measured   kConfirm later; the next look is after kEvery, in large jobs later
//
// More progress: `gain_min` or more, by Replan (common/grouping/group_planner.h). What the present
// groups do is measured at each look, and remembered for their number (GroupExperience). So groups
// that did better than those that replaced them come back at the next look, and a number of groups
// of which the model promises too much is tried once. A plan that brings less than half of what was
// promised doubles `gain_min`, up to kGainMinMax, except for the look that follows: so groups do
// not change again and again because measurements vary. `gain_min` and what was remembered are
// forgotten when the number of workers has changed by more than a quarter.
//
// A plan under which not all workers take steps is given up after a minute, or 20 steps as long as
// those before.
//
// All this is put off while a member drains or has just gone. While a worker is away, only workers
// without a group that are here are placed.
//
// Actor-confined, deterministic. The references outlive it. What is measured, and `gain_min`, are
// lost at a restart of the scheduler.
class GroupReplans {
 public:
  static constexpr absl::Duration kPlaceAfter = absl::Seconds(1);
  static constexpr absl::Duration kConfirm = absl::Seconds(2);
  static constexpr absl::Duration kEvery = absl::Seconds(30);
  // Of each worker of the job, if that is longer altogether: 10,000 are planned in about a second.
  static constexpr absl::Duration kEveryPerWorker = absl::Milliseconds(20);
  static constexpr double kGainMinMax = 0.8;

  GroupReplans(ClusterState& state, const PlanMeasurements& measurements, const AwayWorkers& away,
               GroupRoster& roster)
      : state_(state), measurements_(measurements), away_(away), roster_(roster) {}

  // To be called about every half second.
  void Tick(absl::Time now);
  // StatusReply.plan: also for a job whose groups were not left to the scheduler, so that its
  // operator can compare.
  void FillStatus(absl::Time now, proto::StatusReply& reply) const;

 private:
  using GroupList = std::vector<std::vector<NodeId>>;

  // A plan that is under way, until it has been compared with the groups before.
  struct Trial {
    std::vector<NodeId> workers;
    GroupList before;
    // Samples per second.
    double measured_before = 0;
    double promised = 0;
    // ReplanDecision::gain of the plan.
    double promised_gain = 0;
    absl::Time stalled_at;
  };

  bool IsPlanned() const;
  GroupList Present() const;
  // The workers that may be in groups, in growing order. `members`: those of ACTIVE groups.
  std::vector<NodeId> Placeable(absl::Time now, const std::vector<NodeId>& members) const;
  bool AnyAway(absl::Time now, const std::vector<NodeId>& workers) const;
  // Looks again after kLookAgain, and confirms nothing that was seen before.
  void PutOff(absl::Time now);
  void PlaceWaiting(absl::Time now, const std::vector<NodeId>& workers,
                    const std::vector<NodeId>& unplaced);
  // Measures the present groups of `workers`, and forms others if these are better.
  void Look(absl::Time now, const std::vector<NodeId>& workers);
  // Ends the trial, if there is one. Returns it if the workers are still the same: those that have
  // come or gone meanwhile are no merit of the plan, and not its fault.
  std::optional<Trial> TakeTrial(const std::vector<NodeId>& workers);
  // A plan has brought too little: the next one must promise a larger gain.
  void AskForMore();
  // Compares the plan under way, if there is one, with the groups before it.
  void EndTrial(const std::vector<NodeId>& workers, double measured);
  void GiveUpIfStalled(absl::Time now, const std::vector<NodeId>& workers);
  // By what groups are planned now. If all workers have been measured, `experience` notes what the
  // present groups do.
  PlanInputs Inputs(absl::Time now, const std::vector<NodeId>& workers,
                    GroupExperience& experience) const;
  void Apply(absl::Time now, const GroupList& groups, const std::string& reason);

  ClusterState& state_;
  const PlanMeasurements& measurements_;
  const AwayWorkers& away_;
  GroupRoster& roster_;
  absl::Time next_ = absl::InfinitePast();
  // Other groups were better at the last look.
  bool wants_other_groups_ = false;
  // When groups were changed last: what was measured before is of other groups.
  absl::Time changed_at_ = absl::InfinitePast();
  absl::Time unplaced_since_ = absl::InfiniteFuture();
  GroupExperience experience_;
  size_t experienced_workers_ = 0;  // so many were there when it began
  double gain_min_ = kReplanGainMin;
  std::optional<Trial> trial_;
  // A plan has just been measured.
  bool trial_has_ended_ = false;
};

}  // namespace covey::scheduler

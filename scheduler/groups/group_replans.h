// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/grouping/group_planner.h"
#include "proto/scheduler.pb.h"
#include "scheduler/groups/away_workers.h"
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
//   a plan has run for kEvery  its throughput is compared with the prediction. If it makes less
//                              progress than the groups before, these come back
//
// More progress: `gain_min` or more, by Replan (common/grouping/group_planner.h). It begins with
// kReplanGainMin, and grows when a plan brings less than half of what was predicted, so that groups
// do not change again and again where the model does not fit. A worker that is away puts all this
// off, except that workers without a group are placed.
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
    GroupList before;
    double measured_before = 0;
    // Predicted for the plan over predicted for the groups before: samples per second, and
    // statistical factor.
    double throughput_ratio = 1;
    double statistical_ratio = 1;
  };

  bool IsPlanned() const;
  GroupList Present() const;
  // The placeable workers that are in no group.
  std::vector<NodeId> Unplaced(const std::vector<NodeId>& workers) const;
  bool AnyAway(absl::Time now, const std::vector<NodeId>& workers) const;
  void PlaceWaiting(absl::Time now, const std::vector<NodeId>& unplaced);
  void PlanAgain(absl::Time now);
  // Compares the plan under way with the groups before it; true: these have come back.
  bool EndTrial(absl::Time now, const std::vector<NodeId>& workers);
  void Apply(const GroupList& groups, const std::string& reason);

  ClusterState& state_;
  const PlanMeasurements& measurements_;
  const AwayWorkers& away_;
  GroupRoster& roster_;
  absl::Time next_ = absl::InfinitePast();
  // Other groups were better at the last look.
  bool wants_other_groups_ = false;
  absl::Time unplaced_since_ = absl::InfiniteFuture();
  double gain_min_ = kReplanGainMin;
  std::optional<Trial> trial_;
};

}  // namespace covey::scheduler

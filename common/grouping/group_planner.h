// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/grouping/throughput_model.h"

namespace covey {

struct GroupPlanOptions {
  // Number of groups; 0 = the best number. Never more than workers.
  size_t groups = 0;
  enum class Sizes {
    kEqual,  // differ by at most one
    kFree,
  };
  Sizes sizes = Sizes::kFree;
  size_t members_max = kGroupMembersMax;
  ThroughputParameters model;
};

struct PlannedGroup {
  // In ring order: neighbors in the topology are neighbors in the ring.
  std::vector<NodeId> members;
  // The expected speed, the time of a step with the servers' part, and its other terms.
  double samples_per_second = 0;
  double step_seconds = 0;
  ThroughputModel::Terms terms;
};

// The best groups of one number that the planner has found.
struct PlanCandidate {
  size_t groups = 0;
  // As predicted, by ThroughputModel.
  double samples_per_second = 0;
  double statistical_factor = 1;
  double fit = 1;

  double value() const { return samples_per_second * statistical_factor * fit; }
};

struct GroupPlan {
  // Sorted by the lowest rank in each group.
  std::vector<PlannedGroup> groups;
  // The numbers of groups that were compared, in growing order; of EvaluateGroups none. In a large
  // cluster only the most promising ones were improved.
  std::vector<PlanCandidate> candidates;
  double samples_per_second = 0;
  // Progress per sample, 1 for one group.
  double statistical_factor = 1;
  // ThroughputModel::Fit.
  double fit = 1;

  // The measure by which plans are compared.
  double value() const { return samples_per_second * statistical_factor * fit; }
  std::vector<std::vector<NodeId>> Members() const;
  // Evidence for users: "2 groups, 512 samples/s x 0.95; 4 workers 256/s (compute 110 ms, …), …",
  // the first few groups. "512 samples/s (0.6 of the model's)" where the fit is not 1.
  std::string Explain() const;
  // Why this number of groups: "of the numbers from 1 to 4, 2 promises the most progress, and 3
  // promises 1.6 % less". Empty when there was no choice.
  std::string ExplainChoice() const;
};

// Cuts workers into groups so that
//
//   sum over groups of k samples_per_step availability / (E[slowest member] + communication)
//     x groups^-penalty x fit
//
// is as large as it can find (ThroughputModel has the terms). So groups end up inside racks, of
// nearly equal speed, with the unreliable kept together, and remaining workers in the nearest rack.
// Tries cuts along the topology, along speed inside racks and along speed alone, for each candidate
// number of groups, and improves the best by moving and swapping workers. Within 2 % of the best of
// all partitions for up to 12 workers; 10,000 workers take less than a second.
//
// Pure; independent of the order of `workers`. Preconditions: at least one worker; options.groups x
// members_max not below the number of workers unless groups = 0.
GroupPlan PlanGroups(std::vector<PlannedWorker> workers, const GroupPlanOptions& options);

// The same for `groups` groups of equal size (they differ by at most one). Without speeds, groups
// fill whole hosts first, then the remaining workers of a rack, then those of a zone, so that as
// few groups as possible cross a border; without labels, by rank. There are never more groups than
// workers, and none without workers.
std::vector<std::vector<NodeId>> PlanGroups(std::vector<PlannedWorker> workers, size_t groups);

// The value of the present groups by the same measure. Members that are not in `workers` are left
// out, and so are groups that have no other members.
GroupPlan EvaluateGroups(std::vector<PlannedWorker> workers,
                         const std::vector<std::vector<NodeId>>& groups,
                         const ThroughputParameters& model);

// The same groups with all other workers added, one by one, where they bring most. Members that are
// not in `workers` are left out. Without present groups there are as few as possible: nothing is
// known yet about how workers get on together.
std::vector<std::vector<NodeId>> PlaceWorkers(const std::vector<PlannedWorker>& workers,
                                              const std::vector<std::vector<NodeId>>& present,
                                              const GroupPlanOptions& options);

struct ReplanDecision {
  bool replan = false;
  // The groups to form when `replan`; otherwise the present groups.
  GroupPlan plan;
  // Gain of the best plan over keeping the present groups: 0.05 = 5 % more progress per second.
  double gain = 0;
  // For the event trail.
  std::string reason;
};

// Whether to form other groups: when a member has gone or a worker is in no group, when the number
// of groups is not the wanted one, or when the best plan gains more than `gain_min`. After a change
// of membership the groups keep their remaining members and take new ones where they fit best,
// unless the best plan gains more than `gain_min` over that. So one departure does not move all
// workers. Pure; independent of the order of `workers`. Preconditions as of PlanGroups.
inline constexpr double kReplanGainMin = 0.05;
ReplanDecision Replan(const std::vector<PlannedWorker>& workers,
                      const std::vector<std::vector<NodeId>>& present,
                      const GroupPlanOptions& options, double gain_min = kReplanGainMin);

}  // namespace covey

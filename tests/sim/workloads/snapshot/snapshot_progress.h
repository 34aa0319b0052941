// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/snapshot_cut.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/workloads/snapshot/snapshot_plan.h"

namespace covey::sim {

// The progress of a run of the workload "snapshot", shared by its programs. The cluster outlives
// it.
struct SnapshotProgress {
  const SimCluster* cluster = nullptr;
  const SnapshotCut* cut = nullptr;
  // Counts jobs from 1.
  int job = 1;
  absl::Time job_since = absl::InfinitePast();
  std::map<GroupId, uint64_t> begun;  // last step, by group
  std::map<GroupId, uint64_t> taken;  // last step that has succeeded
  std::set<GroupId> finished;         // groups of the last job that have finished everything
  std::map<std::pair<GroupId, uint64_t>, uint64_t> elements;
  uint64_t highest_step = 0;  // that any group has begun
  uint64_t steps = 0;         // that have succeeded

  // The element of a group's step. Nothing when this job has used enough, and no group has begun
  // this step: groups that wait for each other come to the same step.
  std::optional<uint64_t> ElementOf(GroupId group, uint64_t step) {
    const auto known = elements.find({group, step});
    if (known != elements.end()) return known->second;
    const uint64_t enough =
        job == 1 ? SnapshotPlan::kElementsOfFirstJob : SnapshotPlan::kElementsOfBothJobs;
    const bool may_begin = elements.size() < enough || step <= highest_step;
    if (!may_begin || elements.size() >= SnapshotPlan::kElements) return std::nullopt;
    highest_step = std::max(highest_step, step);
    return elements.emplace(std::pair(group, step), elements.size()).first->second;
  }

  // Whether faults have ended, and the job begun, so long ago that every death is in the view.
  bool EveryDeathIsNoticed() const {
    return cluster->healed() &&
           cluster->simulator().now() - std::max(job_since, cluster->healed_at()) >
               absl::Seconds(60);
  }
};

}  // namespace covey::sim

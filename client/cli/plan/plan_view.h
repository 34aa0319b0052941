// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/grouping/group_planner.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// The groups of a job beside those that the planner would form. Pure.

struct PlanPage {
  struct Group {
    uint32_t id = 0;
    std::vector<std::string> members;
    // Samples per second; and seconds per step, of its slowest member. 0 = not measured yet.
    double measured = 0;
    double measured_step = 0;
    PlannedGroup predicted;
  };

  // The scheduler chooses the groups; and the time until it looks again, 0 = not soon.
  bool automatic = false;
  double next_seconds = 0;
  // ACTIVE ones, in growing order of id.
  std::vector<Group> groups;
  // Of all groups; 0 = not measured yet.
  double measured = 0;
  GroupPlan present;
  // What the planner would form now, with the workers' names.
  GroupPlan best;
  std::vector<std::vector<std::string>> best_members;
  std::vector<std::string> sources;

  // Of `best` over `present`: 0.05 = 5 % more progress per second.
  double gain() const { return best.value() / present.value() - 1; }
};

// FAILED_PRECONDITION: there are no groups yet, no table, or the scheduler is of a version that
// does not plan; says which, and what to do. INVALID_ARGUMENT: as ReadPlanInputs.
absl::StatusOr<PlanPage> MakePlanPage(const proto::StatusReply& status);

// For humans.
std::string PlanText(const PlanPage& page);
// One object.
std::string PlanJson(const PlanPage& page);

}  // namespace covey::cli

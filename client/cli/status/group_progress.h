// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "client/step_times.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// The progress of one group, combined from its members' reports. A value.
struct GroupProgress {
  uint32_t group = 0;
  proto::Group::State state = proto::Group::STATE_UNSPECIFIED;
  std::string reason;
  size_t members = 0;
  uint64_t generation = 0;
  // Members that are slow for a long time, or occasionally late.
  size_t stragglers = 0;
  // Some member has finished a step; else the rest is 0.
  bool started = false;
  // Of the member that is furthest ahead.
  uint64_t step = 0;
  // Sums over members.
  uint64_t samples = 0;
  double samples_per_second = 0;
  // Steps that continued without the gradient of a late member.
  uint64_t steps_aside = 0;
  // Per step: the slowest member's own work, and the members' mean waiting time.
  double compute_seconds = 0;
  double wait_seconds = 0;
  // Mean over members that have reported where the time of a step goes; else 0.
  client::StepTimes step_times;
  // Mean over members that have processed an example.
  double loss = 0;
  // Mean over members that have finished a step.
  double staleness = 0;
};

// In the order of the view. Pure.
std::vector<GroupProgress> ProgressOfGroups(const proto::StatusReply& status);

// Where the time of a worker's step goes; 0 until it has been measured. Pure.
client::StepTimes StepTimesOf(const proto::Progress& progress);

// "active", "broken", "done".
std::string ShowState(proto::Group::State state);

}  // namespace covey::cli

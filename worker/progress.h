// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "client/step_times.h"

namespace covey::worker {

// The progress of a worker, as heartbeats and progress lines report it.
struct Progress {
  uint64_t step = 0;
  // Of this worker, in all steps.
  uint64_t samples = 0;
  // Of the newest step with examples; 0 until there was one.
  double loss = 0;
  // The following values belong to the last full interval of about a second; 0 during the first.
  double samples_per_second = 0;
  // Per step: the program's own time, of which input_seconds went into reading and preparing
  // samples (HybridStep::InputTime).
  double compute_seconds = 0;
  double input_seconds = 0;
  // Per step: the time spent waiting for values, which is that for the group and that for servers.
  // worker/hybrid/server_times.h says which is which.
  double wait_seconds = 0;
  double group_seconds = 0;
  double servers_seconds = 0;
  // The program's own time in the slowest step: hiccups that the mean hides.
  double slowest_seconds = 0;
  double samples_per_step = 0;
  // The mean number of updates by others between the values that a gradient was computed on and its
  // application.
  double staleness = 0;
  // Steps so far that continued without this worker's gradient because it was late.
  uint64_t steps_aside = 0;
  // Steps so far that were repeated because a member had died; and how long the last of them took
  // from then on.
  uint64_t recoveries = 0;
  double recovery_seconds = 0;
  // Where the time of a step went: the mean over all steps but the first.
  client::StepTimes step_times;
};

}  // namespace covey::worker

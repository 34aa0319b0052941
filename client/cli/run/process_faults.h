// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/run/restarts.h"
#include "client/cli/run/run_display.h"
#include "client/cli/run/run_incidents.h"
#include "client/cli/run/run_processes.h"
#include "common/faults/fault_schedule.h"

namespace covey::cli {

// Carries out RunOptions::faults on the processes of a run: kills, restarts, stops and continues.
// The times of the plan count from the first step of training.
//
// Confined to one thread. Everything that it is given outlives it.
class ProcessFaults {
 public:
  ProcessFaults(const FaultPlan& plan, RunProcesses& processes, Restarts& restarts,
                RunDisplay& display, RunIncidents& incidents)
      : schedule_(plan),
        processes_(processes),
        restarts_(restarts),
        display_(display),
        incidents_(incidents) {}

  // Calls after the first change nothing.
  void TrainingHasBegun(absl::Time now) {
    if (!since_.has_value()) since_ = now;
  }
  // Injects the faults that are due. `elapsed`: of the run.
  void Inject(absl::Time now, absl::Duration elapsed);
  // InfiniteFuture() when no fault is left, or training has not begun.
  absl::Time NextAt() const;

 private:
  void StopOrContinue(const FaultSchedule::Action& action, absl::Duration elapsed);
  void KillOrRestart(const FaultSchedule::Action& action, absl::Time now);

  FaultSchedule schedule_;
  RunProcesses& processes_;
  Restarts& restarts_;
  RunDisplay& display_;
  RunIncidents& incidents_;
  std::optional<absl::Time> since_;
};

// SIGKILL, and a line that says so. Without effect when no process of this name is running.
void Kill(absl::string_view name, absl::string_view why, RunProcesses& processes,
          RunDisplay& display);

}  // namespace covey::cli

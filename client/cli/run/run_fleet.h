// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/run/process_faults.h"
#include "client/cli/run/restarts.h"
#include "client/cli/run/run_display.h"
#include "client/cli/run/run_incidents.h"
#include "client/cli/run/run_processes.h"
#include "client/cli/run/run_supervisor.h"
#include "proto/view.pb.h"

namespace covey::cli {

// The processes of a local run from the first start to the last exit: starts them, replaces those
// that end where Restarts says so, starts more when more are wanted, injects the planned faults,
// and sends the signals that RunSupervisor decides on.
//
// Confined to one thread. Everything that it is given outlives it.
class RunFleet {
 public:
  // `start`: when the run began, from which incidents count.
  RunFleet(const RunOptions& options, const LocalPaths& paths, absl::Time start,
           RunDisplay& display, RunIncidents& incidents);

  absl::Status StartScheduler();
  // Starts servers and workers as soon as the scheduler listens. A failure fails the run.
  void StartOthersWhenPossible(absl::Time now);
  bool others_started() const { return others_started_; }

  // Injects the faults and does the restarts that are due.
  void StartDue(absl::Time now);
  // Takes note of the processes that have ended; returns whether there are any.
  bool Reap(absl::Time now);
  // Sends the signals that are due.
  void SendSignals(absl::Time now);
  // The scheduler's newest view: which processes it declared dead, and how many it wants.
  void TakeView(absl::Time now, const proto::ClusterView& view);
  void TrainingHasBegun(absl::Time now) { faults_.TrainingHasBegun(now); }

  // When StartDue or SendSignals is to be called next.
  absl::Time NextWake() const;
  RunSupervisor& supervisor() { return supervisor_; }
  const RunSupervisor& supervisor() const { return supervisor_; }
  RunProcesses& processes() { return processes_; }
  // Whether the newest scheduler was told to end.
  bool scheduler_was_stopped() const { return supervisor_.WasStopped(scheduler_); }
  // The process that failed first.
  std::optional<size_t> failed() const { return failed_; }

 private:
  using Role = RunSupervisor::Role;

  absl::Status Start(Role role, uint32_t rank);
  absl::Status StartOthers();
  // Whether another process replaces this one, which has ended.
  bool ComesBack(size_t number, const ChildExit& exit, absl::Time now);
  // Kills declared-dead processes that hang and are no longer waited for.
  void FollowDead(absl::Time now, const proto::ClusterView& view);
  // Starts the processes that are missing from the numbers that the view asks for.
  void FollowWanted(absl::Time now, const proto::ClusterView& view);
  void StartMissing(absl::Time now, Role role, uint32_t wanted, const proto::ClusterView& view);
  double Elapsed(absl::Time now) const { return absl::ToDoubleSeconds(now - start_); }

  const RunOptions& options_;
  const absl::Time start_;
  RunDisplay& display_;
  RunIncidents& incidents_;
  RunSupervisor supervisor_;
  RunProcesses processes_;  // numbered as in the supervisor
  Restarts restarts_;
  ProcessFaults faults_;
  size_t scheduler_ = 0;
  bool scheduler_answered_ = false;  // the newest one
  bool others_started_ = false;
  bool ended_well_ = false;  // some worker has
  absl::Time next_missing_ = absl::InfinitePast();
  std::optional<size_t> failed_;
};

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/faults/fault.h"
#include "common/grouping/straggler_ladder.h"

namespace covey::cli {

// All on one machine; more than this is a typing error.
inline constexpr uint32_t kProcessesMax = 256;

// What a person says to `covey run`. A value.
struct RunOptions {
  uint32_t servers = 1;
  uint32_t groups = 1;
  uint32_t workers_per_group = 1;
  // How tensors travel: "tcp" or "ipc".
  std::string transport = "tcp";
  std::string job = "run";
  // Data loops of each server, one thread each. 0 = as the server likes.
  uint32_t server_loops = 0;
  // How far the scheduler goes against slow workers.
  StragglerRung stragglers = StragglerRung::kShift;
  // Cores for all of it; 0 = not known. Where every process has one of its own, servers wait awake.
  uint32_t cores = 0;
  // The whole run is stopped, and has failed, after so long.
  absl::Duration timeout = absl::InfiniteDuration();
  // How long a process may take to stop after SIGTERM before it is killed.
  absl::Duration grace = absl::Seconds(5);
  // When a server or worker dies: the run goes on without it for as long as any is left, a new one
  // takes its place, or everything stops.
  enum class OnFailure { kContinue, kRestart, kStop };
  OnFailure on_failure = OnFailure::kContinue;
  // What is done to the processes from the first step of training on: kill, stop, restart.
  FaultPlan faults;
  // What people see while it runs, besides what goes wrong.
  enum class Show { kEverything, kProgramErrors };
  Show show = Show::kEverything;
  // Written at the end; empty = not.
  std::string report_file;
  std::string json_file;
  // One file per process with everything that it writes; empty = none.
  std::string log_folder;
  // Each copy of it is a worker. The path, then its arguments.
  std::vector<std::string> program;
  // Empty = found beside this program.
  std::string scheduler_binary;
  std::string server_binary;

  uint32_t workers() const { return groups * workers_per_group; }

  // "server-0", …: all that are started at first.
  std::vector<std::string> NodeNames() const;

  // INVALID_ARGUMENT: names the flag, its value and what is allowed.
  absl::Status Validate() const;
};

// "continue", "restart", "stop".
absl::string_view OnFailureName(RunOptions::OnFailure value);
absl::StatusOr<RunOptions::OnFailure> ParseOnFailure(absl::string_view name);

// "server-0@10s,worker-1@15s": kills, as --kill of `covey run` takes them. INVALID_ARGUMENT: ends
// the sentence "--kill=x: ".
absl::StatusOr<FaultPlan> ParseKills(absl::string_view text);

}  // namespace covey::cli

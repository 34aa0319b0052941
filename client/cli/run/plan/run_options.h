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
#include "common/grouping/stragglers/straggler_rung.h"
#include "common/security/identity.h"

namespace covey::cli {

// All run on one machine; a larger number is a typing error.
inline constexpr uint32_t kProcessesMax = 256;

// The options of `covey run`. A value.
struct RunOptions {
  uint32_t servers = 1;
  uint32_t groups = 1;
  uint32_t workers_per_group = 1;
  // The scheduler chooses the groups: `groups` is 1, and `workers_per_group` are all workers.
  bool plans_groups = false;
  // How tensors travel (common/net/data_transport.h).
  std::string transport = "auto";
  std::string job = "run";
  // The folder with a folder of credentials for each role, as `covey certificates issue
  // --every-role` makes it; empty = the processes have none.
  std::string tls;
  // Data loops of each server, one thread each. 0 = the server's default.
  uint32_t server_loops = 0;
  // The strongest measure that the scheduler takes against slow workers.
  StragglerRung stragglers = StragglerRung::kShift;
  // Cores for the whole cluster; 0 = not known. When each process has a core of its own, servers
  // busy-wait.
  uint32_t cores = 0;
  // The whole run is aborted, and has failed, after this duration.
  absl::Duration timeout = absl::InfiniteDuration();
  // How long a process may take to stop after SIGTERM before it is killed.
  absl::Duration grace = absl::Seconds(5);
  // How much longer servers may take when there is a store: the last state goes into a snapshot.
  absl::Duration last_snapshot_max = absl::Seconds(30);
  // When a server or worker dies: the run continues while any of its kind is left, the process is
  // restarted, or everything stops.
  enum class OnFailure { kContinue, kRestart, kStop };
  OnFailure on_failure = OnFailure::kContinue;
  // Faults that are injected from the first training step on: kill, stop, restart.
  FaultPlan faults;
  // The output during the run, besides failures.
  enum class Show { kEverything, kProgramErrors };
  Show show = Show::kEverything;
  // Written at the end; empty = no report.
  std::string report_file;
  std::string json_file;
  // Written while the run goes on; empty = no event files.
  std::string events_folder;
  // The model, written when the programs have ended well; empty = not written.
  std::string export_file;
  // The folder of snapshots; empty = none are made. The snapshot with which the job begins, when it
  // makes others, and the steps at which error feedback is flushed: as the scheduler's options
  // --resume, --snapshot-every and --feedback-flush-steps.
  std::string store;
  std::string resume;
  std::string snapshot_every;
  std::string feedback_flush_steps;
  // As the scheduler's options of these names; empty = its defaults.
  std::string durability;
  std::string on_loss;
  std::string snapshots_kept;
  // Where the servers record what they apply; empty = no recording. With or without gradients.
  std::string record_folder;
  bool record_gradients = true;
  // One file per process with all its output; empty = none.
  std::string log_folder;
  // The path, then its arguments; each worker runs a copy.
  std::vector<std::string> program;
  // As the scheduler's --initial-values; empty = tables begin with their initializers.
  std::string initial_values;
  // Empty = found beside this program.
  std::string scheduler_binary;
  std::string server_binary;

  // The folder of a role's credentials; empty = none.
  std::string TlsOf(IdentityRole role) const;

  uint32_t workers() const { return groups * workers_per_group; }
  // `groups` and `plans_groups` as the option --groups.
  std::string Groups() const;

  // "server-0", …: all nodes that are started initially.
  std::vector<std::string> NodeNames() const;

  // INVALID_ARGUMENT: names the flag, its value and what is allowed.
  absl::Status Validate() const;
};

// "continue", "restart", "stop".
absl::string_view OnFailureName(RunOptions::OnFailure value);
absl::StatusOr<RunOptions::OnFailure> ParseOnFailure(absl::string_view name);

// "server-0@10s,worker-1@15s": kills, in the syntax of --kill of `covey run`. INVALID_ARGUMENT: the
// message continues after "--kill=x: ".
absl::StatusOr<FaultPlan> ParseKills(absl::string_view text);

}  // namespace covey::cli

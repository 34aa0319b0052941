// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/console/terminal.h"
#include "client/cli/report/run_history.h"
#include "client/cli/run/plan/launch_plan.h"
#include "client/cli/run/plan/run_options.h"
#include "client/cli/run/run_incidents.h"
#include "proto/scheduler.pb.h"

namespace covey::cli {

// The result of a run.
struct RunOutcome {
  // OK: the workers ended well by themselves; all of them or, where a run continues after losses,
  // some. ABORTED: the first failure, in one line.
  absl::Status status;
  // The JSON object of the last `result` line of any worker; empty = none.
  std::string result;
  // As RunDisplay.
  std::string step_sentence;
  RunHistory history;
  RunIncidents incidents;
  // As the scheduler last said.
  proto::AtRisk at_risk;
  absl::Duration wall;
};

// Runs a scheduler, servers and workers on this machine until the workers have ended, and shows
// their output and progress. RunSupervisor decides which process is stopped when. Injects
// `options.faults`, and follows the numbers of servers and workers that the scheduler is asked for
// (`covey scale`). SIGINT and SIGTERM drain; a second one kills. Blocks; never longer than the
// programs take plus their grace. No process and no file is left afterwards.
//
// `binaries`: the paths of scheduler and server. Call it once per process, from its only thread,
// after InitProcess.
RunOutcome RunLocalCluster(const RunOptions& options, const LocalPaths& binaries,
                           Terminal& terminal);

}  // namespace covey::cli

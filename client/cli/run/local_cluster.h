// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/console/terminal.h"
#include "client/cli/report/run_history.h"
#include "client/cli/run/launch_plan.h"
#include "client/cli/run/run_incidents.h"
#include "client/cli/run/run_options.h"

namespace covey::cli {

// What came of a run.
struct RunOutcome {
  // OK: the workers ended well by themselves, all or, where the run goes on without those that it
  // loses, some. ABORTED: the first failure, in one line.
  absl::Status status;
  // The JSON object behind the last `result` that a worker printed; empty = none did.
  std::string result;
  RunHistory history;
  RunIncidents incidents;
  absl::Duration wall;
};

// Runs a scheduler, servers and workers on this machine until the workers have ended, and shows
// what they print and how far they are. RunSupervisor says who is stopped when. Carries out
// `options.faults`, and follows the numbers of servers and workers that somebody asks the scheduler
// for (`covey scale`). SIGINT and SIGTERM
// drain; a second one kills. Blocks; never longer than the programs take plus their grace. Nothing
// of it is left afterwards: no process, no file.
//
// `binaries`: the paths of scheduler and server. To be called once per process, from its only
// thread, after InitProcess.
RunOutcome RunLocalCluster(const RunOptions& options, const LocalPaths& binaries,
                           Terminal& terminal);

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/report/report.h"
#include "client/cli/run/local_cluster.h"
#include "client/cli/run/plan/run_options.h"

namespace covey::cli {

// The final output of `covey run`, computed from the outcome. Pure.

// One JSON object in one line: the object of a worker's `result` line, then "servers", "groups",
// "workers" (all of them) and "wall_seconds"; if it has been measured, also "step_times" (where the
// time of a step went); if anything was lost or moved also "losses".
std::string ResultLine(const RunOptions& options, const RunOutcome& outcome);

// The same object for a file, with these additions: "error" (absent = none), "history" (the points
// of each group), "events" and "incidents" (each with "seconds", "node", "what").
std::string ResultFile(const RunOptions& options, const RunOutcome& outcome);

// Where the time of a step went, in one line for humans: the mean of all workers. After a run of
// less than some seconds it is what one worker said of its own steps; empty = none did.
std::string StepLine(const RunOutcome& outcome);

// After how many samples and seconds the program reached its target, in one line for humans: its
// result has "samples_to_target" and "seconds_to_target", which are null where it did not. Empty =
// the program has no target.
std::string TargetLine(const RunOutcome& outcome);

// The incidents of processes and their cost, one line each; empty when there were none.
std::vector<std::string> LossLines(const RunOutcome& outcome);

// `date`: when the run ended, for humans.
Report MakeReport(const RunOptions& options, const RunOutcome& outcome, absl::string_view date);

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/report/report.h"
#include "client/cli/run/local_cluster.h"
#include "client/cli/run/run_options.h"

namespace covey::cli {

// What `covey run` says at the end, made from what came of the run. Pure.

// One JSON object in one line: what a worker printed after `result`, then "servers", "groups",
// "workers" (all of them) and "wall_seconds"; where something was lost or moved also "losses".
std::string ResultLine(const RunOptions& options, const RunOutcome& outcome);

// The same object for a file, with "error" (absent = none), "history" (per group, its points) and
// "events" and "incidents" (each "seconds", "node", "what") besides.
std::string ResultFile(const RunOptions& options, const RunOutcome& outcome);

// What happened to processes, and what it cost, a line each; none when nothing did.
std::vector<std::string> LossLines(const RunOutcome& outcome);

// `date`: when the run ended, for people.
Report MakeReport(const RunOptions& options, const RunOutcome& outcome, absl::string_view date);

}  // namespace covey::cli

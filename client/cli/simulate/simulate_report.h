// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "client/cli/simulate/cluster_model.h"
#include "client/cli/simulate/simulate_options.h"

namespace covey::cli {

// The output of `covey simulate`, in the order of --groups. Pure.

// For a terminal: one line per number of groups, then the ladder's decisions.
std::string SimulationText(const SimulateOptions& options,
                           const std::vector<ClusterResult>& results);
// One object: options and results.
std::string SimulationJson(const SimulateOptions& options,
                           const std::vector<ClusterResult>& results);
// One HTML page with curves.
std::string SimulationPage(const SimulateOptions& options,
                           const std::vector<ClusterResult>& results);

}  // namespace covey::cli

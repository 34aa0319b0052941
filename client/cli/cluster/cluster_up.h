// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "absl/status/status.h"
#include "client/cli/cluster/cluster_file.h"

namespace covey::cli {

// Starts what does not run of a cluster, the scheduler first, and waits until all servers and
// workers are registered. What runs is left alone, and so are workers that have finished. Says what
// it does on standard output, and how far it is on standard error. Blocks.
//
// UNAVAILABLE: a host, or the scheduler, is not reached. CANCELLED: a signal came. Other errors
// name the host and what to do; what was started then goes on.
absl::Status StartCluster(const ClusterFile& file);

// The command lines that StartCluster runs when nothing runs yet. Pure.
std::string DryRunText(const ClusterFile& file);

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/cli/cluster/cluster_file.h"

namespace covey::cli {

struct StopOptions {
  // Until the processes of a role have ended.
  absl::Duration deadline;
  // Kills what has not ended by then.
  bool kill = false;
};

// Ends a cluster in order: workers, then servers, then schedulers; with a store the schedulers are
// asked together with the servers, so that the job's last state goes into a snapshot. What another
// program runs under a process id of ours gets no signal. Says on standard output what has ended.
// Blocks.
//
// UNAVAILABLE: a host is not reached; the others were ended. DEADLINE_EXCEEDED: a process has not
// ended; then later roles go on, and the same again goes on waiting. CANCELLED: a signal came.
absl::Status StopCluster(const ClusterFile& file, const StopOptions& options);

}  // namespace covey::cli

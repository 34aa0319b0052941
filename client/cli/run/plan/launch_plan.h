// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "client/cli/process/child_process.h"
#include "client/cli/run/plan/run_options.h"

namespace covey::cli {

// The command line and environment of each process of a local cluster. Pure.

// Files and ports through which the processes find each other.
struct LocalPaths {
  std::string scheduler_binary;
  std::string server_binary;
  // The scheduler writes its port here.
  std::string port_file;
  // The scheduler's port; 0 = any free port.
  uint32_t port = 0;
  // The scheduler's durable log.
  std::string scheduler_log;
};

Program SchedulerProgram(const RunOptions& options, const LocalPaths& paths);

// `address`: "host:port" of the scheduler.
Program ServerProgram(const RunOptions& options, const LocalPaths& paths, absl::string_view address,
                      uint32_t rank);

// Ranks are numbered across the groups: group 0 has the first `workers_per_group` of them, and so
// on. The labels tell the scheduler the same: one rack per group.
Program WorkerProgram(const RunOptions& options, absl::string_view address, uint32_t rank);

}  // namespace covey::cli

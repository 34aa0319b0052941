// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/runtime/config_file.h"

namespace covey::cli {

// --output table|json, for commands that print a result; `json` outlives `options`.
void AddOutput(ConfigFile& options, bool* json);
// Reads the command line, including `-o`. Returns an exit code when the command should end.
std::optional<int> LoadWithShortOutput(ConfigFile& options, int count,
                                       const char* const* arguments);

// The options of every command that queries a scheduler.
struct SchedulerOptions {
  // "host:port", or several: "host:port,host:port".
  std::string scheduler;
  // The folder of the user's certificate; empty = none.
  std::string tls;
  // For a program instead of a human.
  bool json = false;

  SchedulerTarget target() const { return {.addresses = scheduler, .tls = tls}; }
  // --scheduler HOST:PORT[,HOST:PORT], --tls DIR and --output table|json; this outlives `options`.
  void AddTo(ConfigFile& options);
  // Reads the command line, including `-o`. Returns an exit code when the command should end.
  std::optional<int> Load(ConfigFile& options, int count, const char* const* arguments);
  // INVALID_ARGUMENT: `scheduler` is empty or no address. Load has checked it.
  absl::Status Check() const;
};

// Prints a wrong usage or a failure of a command on standard error: "covey status: …".
void PrintFailure(absl::string_view command, const absl::Status& status);
// 3 for UNAVAILABLE, else 1.
int ExitCodeOf(const absl::Status& status);

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace covey::cli {

// One command of `covey`; main.cc lists them all.
struct Command {
  const char* name;
  // One line for `covey --help`.
  const char* summary;
  // `arguments[0]` is the command's name. Returns the exit code.
  int (*run)(int count, const char* const* arguments);
};

// The meaning of exit codes, for all commands.
inline constexpr int kExitOk = 0;
// The command failed, or its subject is unhealthy.
inline constexpr int kExitFailed = 1;
// The command line is wrong.
inline constexpr int kExitUsage = 2;
// No scheduler answers.
inline constexpr int kExitUnreachable = 3;

}  // namespace covey::cli

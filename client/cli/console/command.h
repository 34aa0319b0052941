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

// What exit codes mean, for all commands.
inline constexpr int kExitOk = 0;
// It failed, or what was asked about is unhealthy.
inline constexpr int kExitFailed = 1;
// The command line is wrong.
inline constexpr int kExitUsage = 2;
// Nobody answers.
inline constexpr int kExitUnreachable = 3;

}  // namespace covey::cli

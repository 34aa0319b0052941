// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "client/cli/console/command.h"

namespace covey::cli {

// The entry of the programs in this folder: runs the one of `commands` that the first argument
// names, or prints --help or --version. Returns the exit code. `commands` is not empty.
int RunCommandLine(std::span<const Command> commands, int count, const char* const* arguments);

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0

// `covey` with the one command that deploy/quickstart needs: it builds in less time.

#include "client/cli/command_line.h"
#include "client/cli/run/run_command.h"

namespace covey::cli {
namespace {

constexpr Command kCommands[] = {
    {"run", "runs a program on a whole cluster on this machine", RunCommand},
};

}  // namespace
}  // namespace covey::cli

int main(int argc, char** argv) {
  return covey::cli::RunCommandLine(covey::cli::kCommands, argc, argv);
}

// SPDX-License-Identifier: Apache-2.0

// The `covey` command.

#include "client/cli/bench/bench_command.h"
#include "client/cli/chaos/chaos_command.h"
#include "client/cli/command_line.h"
#include "client/cli/run/run_command.h"
#include "client/cli/scale/drain_command.h"
#include "client/cli/scale/scale_command.h"
#include "client/cli/simulate/simulate_command.h"
#include "client/cli/status/status_command.h"
#include "client/cli/status/tables_command.h"

namespace covey::cli {
namespace {

constexpr Command kCommands[] = {
    {"bench", "what a push, a pull and a round trip cost on this machine", BenchCommand},
    {"chaos", "breaks a small cluster of its own: are the promises kept?", ChaosCommand},
    {"drain", "asks a server or worker to go, without harm", DrainCommand},
    {"run", "a cluster on this machine, for as long as a program runs", RunCommand},
    {"scale", "asks for more or fewer servers and workers", ScaleCommand},
    {"simulate", "what a cluster would make of a training run, before it is bought",
     SimulateCommand},
    {"status", "nodes, groups and tables of a cluster, and whether it is healthy", StatusCommand},
    {"tables", "what a cluster holds", TablesCommand},
};

}  // namespace
}  // namespace covey::cli

int main(int argc, char** argv) {
  return covey::cli::RunCommandLine(covey::cli::kCommands, argc, argv);
}

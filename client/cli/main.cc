// The `covey` command.

#include <unistd.h>

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/bench/bench_command.h"
#include "client/cli/chaos/chaos_command.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/run/run_command.h"
#include "client/cli/scale/drain_command.h"
#include "client/cli/scale/scale_command.h"
#include "client/cli/simulate/simulate_command.h"
#include "client/cli/status/status_command.h"
#include "client/cli/status/tables_command.h"
#include "common/base/edit_distance.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"

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

std::string Help() {
  std::string text = "usage: covey COMMAND [OPTION...]\n\n";
  for (const Command& command : kCommands) {
    absl::StrAppendFormat(&text, "  %-10s %s\n", command.name, command.summary);
  }
  return text +
         "\ncovey COMMAND --help says more; covey --version names the version.\n"
         "Exit codes: 0 ok, 1 failed or unhealthy, 2 wrong usage, 3 unreachable.\n";
}

std::string Unknown(absl::string_view name) {
  const Command* const nearest = std::min_element(
      std::begin(kCommands), std::end(kCommands), [&](const Command& a, const Command& b) {
        return EditDistance(a.name, name) < EditDistance(b.name, name);
      });
  return absl::StrCat("covey: no command '", name, "'; did you mean ", nearest->name,
                      "? covey --help lists all\n");
}

int Main(int count, const char* const* arguments) {
  InitProcess("");
  if (count < 2) {
    WriteAll(STDERR_FILENO, Help());
    return kExitUsage;
  }
  const absl::string_view name = arguments[1];
  if (name == "--help" || name == "-h" || name == "help") {
    WriteAll(STDOUT_FILENO, Help());
    return kExitOk;
  }
  if (name == "--version") {
    WriteAll(STDOUT_FILENO, VersionLine("covey"));
    return kExitOk;
  }
  for (const Command& command : kCommands) {
    if (name == command.name) return command.run(count - 1, arguments + 1);
  }
  WriteAll(STDERR_FILENO, Unknown(name));
  return kExitUsage;
}

}  // namespace
}  // namespace covey::cli

int main(int argc, char** argv) { return covey::cli::Main(argc, argv); }

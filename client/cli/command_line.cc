// SPDX-License-Identifier: Apache-2.0
#include "client/cli/command_line.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/cli/console/text_file.h"
#include "common/base/edit_distance.h"
#include "common/net/grpc_log.h"
#include "common/runtime/config_file.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

std::string Help(std::span<const Command> commands) {
  std::string text = "usage: covey COMMAND [OPTION...]\n\n";
  for (const Command& command : commands) {
    absl::StrAppendFormat(&text, "  %-12s %s\n", command.name, command.summary);
  }
  return text +
         "\ncovey COMMAND --help shows its options; covey --version shows the version.\n"
         "Exit codes: 0 ok, 1 failed or unhealthy, 2 wrong usage, 3 unreachable.\n";
}

std::string Unknown(std::span<const Command> commands, absl::string_view name) {
  const auto nearest =
      std::min_element(commands.begin(), commands.end(), [&](const Command& a, const Command& b) {
        return EditDistance(a.name, name) < EditDistance(b.name, name);
      });
  return absl::StrCat("covey: no command '", name, "'; did you mean ", nearest->name,
                      "? covey --help lists all\n");
}

}  // namespace

int RunCommandLine(std::span<const Command> commands, int count, const char* const* arguments) {
  InitProcess("");
  TakeLogOfGrpc();
  if (count < 2) {
    WriteAll(STDERR_FILENO, Help(commands));
    return kExitUsage;
  }
  const absl::string_view name = arguments[1];
  if (name == "--help" || name == "-h" || name == "help") {
    WriteAll(STDOUT_FILENO, Help(commands));
    return kExitOk;
  }
  if (name == "--version") {
    WriteAll(STDOUT_FILENO, VersionLine("covey"));
    return kExitOk;
  }
  for (const Command& command : commands) {
    if (name == command.name) return command.run(count - 1, arguments + 1);
  }
  WriteAll(STDERR_FILENO, Unknown(commands, name));
  return kExitUsage;
}

}  // namespace covey::cli

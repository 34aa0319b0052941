// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scheduler/scheduler_options.h"

#include <unistd.h>

#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "common/net/host_port.h"
#include "common/net/scheduler_failover.h"

namespace covey::cli {

void AddOutput(ConfigFile& options, bool* json) {
  options.Add(
      "output",
      [json](absl::string_view text) {
        *json = text == "json";
        return *json || text == "table"
                   ? absl::OkStatus()
                   : absl::InvalidArgumentError("not accepted; choose table or json");
      },
      [json] { return *json ? "json" : "table"; }, "table, or json for programs; also -o");
}

std::optional<int> LoadWithShortOutput(ConfigFile& options, int count,
                                       const char* const* arguments) {
  std::vector<const char*> expanded(arguments, arguments + count);
  for (const char*& argument : expanded) {
    if (absl::string_view(argument) == "-o") argument = "--output";
  }
  return options.LoadForMain(count, expanded.data());
}

void SchedulerOptions::AddTo(ConfigFile& options) {
  options.Add("scheduler", &scheduler, "HOST:PORT[,HOST:PORT] of the scheduler; required");
  options.Add(
      "tls", &tls,
      "folder of your certificate (covey certificates issue), where the scheduler has --tls");
  AddOutput(options, &json);
}

absl::Status SchedulerOptions::Check() const {
  if (scheduler.empty()) {
    return absl::InvalidArgumentError(
        "no scheduler given; pass --scheduler HOST:PORT[,HOST:PORT] or set COVEY_SCHEDULER");
  }
  for (const std::string& address : SplitSchedulers(scheduler)) {
    if (!IsHostPort(address)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--scheduler is '", scheduler,
                       "'; write HOST:PORT, as in 127.0.0.1:7070, separate several by commas"));
    }
  }
  return absl::OkStatus();
}

std::optional<int> SchedulerOptions::Load(ConfigFile& options, int count,
                                          const char* const* arguments) {
  if (const std::optional<int> code = LoadWithShortOutput(options, count, arguments)) return code;
  if (const absl::Status status = Check(); !status.ok()) {
    PrintFailure(arguments[0], status);
    return kExitUsage;
  }
  return std::nullopt;
}

void PrintFailure(absl::string_view command, const absl::Status& status) {
  WriteAll(STDERR_FILENO, absl::StrCat("covey ", command, ": ", status.message(), "\n"));
}

int ExitCodeOf(const absl::Status& status) {
  return absl::IsUnavailable(status) ? kExitUnreachable : kExitFailed;
}

}  // namespace covey::cli

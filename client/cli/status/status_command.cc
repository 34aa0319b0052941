// SPDX-License-Identifier: Apache-2.0
#include "client/cli/status/status_command.h"

#include <unistd.h>

#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "client/cli/status/status_view.h"

namespace covey::cli {
namespace {

constexpr size_t kEventsShown = 10;

}  // namespace

int StatusCommand(int count, const char* const* arguments) {
  SchedulerOptions asked;
  bool all_events = false;
  ConfigFile options("covey status",
                     "Shows nodes, groups, tables and the scheduler's latest decisions. Exit code: "
                     "0 healthy, 1 a node is dead or a group broken, 3 no scheduler answers.");
  asked.AddTo(options);
  options.Add("events", &all_events, "all decisions that the scheduler still keeps");
  if (const auto code = asked.Load(options, count, arguments)) return *code;

  absl::StatusOr<proto::StatusReply> status = SchedulerStub(asked.target()).GetStatus();
  if (!status.ok()) {
    PrintFailure(arguments[0], status.status());
    return ExitCodeOf(status.status());
  }
  if (!all_events) KeepLastEvents(*status, kEventsShown);
  WriteAll(STDOUT_FILENO, asked.json ? StatusJson(*status) : StatusText(*status));
  return Problems(*status).empty() ? kExitOk : kExitFailed;
}

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/plan/plan_command.h"

#include <unistd.h>

#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/plan/plan_view.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"

namespace covey::cli {

int PlanCommand(int count, const char* const* arguments) {
  SchedulerOptions asked;
  ConfigFile options(
      "covey plan",
      "Shows the groups of a running job: what the planner expects of them and what they do, which "
      "numbers of groups it compares and why one wins, and the measurements behind it. Plans by "
      "the same function and the same inputs as the scheduler, also for a job whose groups were "
      "not left to it. Exit code: 0 ok, 1 refused or nothing to plan yet, 3 no scheduler answers.");
  asked.AddTo(options);
  if (const auto code = asked.Load(options, count, arguments)) return *code;
  const absl::StatusOr<proto::StatusReply> status = SchedulerStub(asked.target()).GetStatus();
  if (!status.ok()) {
    PrintFailure(arguments[0], status.status());
    return ExitCodeOf(status.status());
  }
  const absl::StatusOr<PlanPage> page = MakePlanPage(*status);
  if (!page.ok()) {
    PrintFailure(arguments[0], page.status());
    return ExitCodeOf(page.status());
  }
  WriteAll(STDOUT_FILENO, asked.json ? PlanJson(*page) : PlanText(*page));
  return kExitOk;
}

}  // namespace covey::cli

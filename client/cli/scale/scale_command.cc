// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scale/scale_command.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scale/fleet_view.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/base/status_macros.h"
#include "common/runtime/event_loop.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(300);

struct Asked {
  // 0 = unchanged.
  uint32_t servers = 0;
  uint32_t workers = 0;
  bool wait = false;
  absl::Duration timeout = absl::Minutes(10);
};

// Polls until the wanted numbers are reached. DEADLINE_EXCEEDED: says what is missing.
absl::Status AwaitWanted(SchedulerStub& scheduler, const Asked& asked) {
  const absl::Time until = MonotonicNow() + asked.timeout;
  std::string last;
  for (;;) {
    COVEY_ASSIGN_OR_RETURN(const proto::StatusReply status, scheduler.GetStatus());
    const std::string rest = ScaleRest(status.view());
    if (rest.empty()) return absl::OkStatus();
    if (rest != last) WriteAll(STDERR_FILENO, absl::StrCat(rest, "\n"));
    last = rest;
    if (MonotonicNow() > until) {
      return absl::DeadlineExceededError(
          absl::StrCat("not done within ", absl::FormatDuration(asked.timeout), ": ", rest,
                       "; does a supervisor such as covey run start processes here?"));
    }
    if (WaitForTermination(kPoll).has_value()) {
      return absl::CancelledError("interrupted; the numbers stay in force, see covey status");
    }
  }
}

absl::StatusOr<uint64_t> Run(SchedulerStub& scheduler, const Asked& asked) {
  proto::ScaleRequest request;
  if (asked.servers > 0) request.set_servers(asked.servers);
  if (asked.workers > 0) request.set_workers(asked.workers);
  COVEY_ASSIGN_OR_RETURN(const proto::ScaleReply reply, scheduler.Scale(request));
  if (asked.wait) COVEY_RETURN_IF_ERROR(AwaitWanted(scheduler, asked));
  return reply.epoch();
}

}  // namespace

int ScaleCommand(int count, const char* const* arguments) {
  SchedulerOptions scheduler;
  Asked asked;
  ConfigFile options("covey scale",
                     "Sets the wanted numbers of servers and workers. Surplus ones drain, highest "
                     "rank first; missing ones must be started by a supervisor such as covey run. "
                     "Exit code: 0 ok, 1 refused or failed, 3 no scheduler answers.");
  scheduler.AddTo(options);
  options.Add("servers", &asked.servers, "wanted servers; 0 = unchanged");
  options.Add("workers", &asked.workers, "wanted workers, in all groups; 0 = unchanged");
  options.Add("wait", &asked.wait, "wait until the numbers are reached; shows what is missing");
  options.Add("timeout", &asked.timeout, "with --wait: give up after this duration");
  if (const auto code = scheduler.Load(options, count, arguments)) return *code;
  if (asked.servers == 0 && asked.workers == 0) {
    PrintFailure(arguments[0], absl::InvalidArgumentError(
                                   "no number given; pass --servers N, --workers N or both"));
    return kExitUsage;
  }
  SchedulerStub stub(scheduler.target());
  const absl::StatusOr<uint64_t> epoch = Run(stub, asked);
  if (!epoch.ok()) {
    PrintFailure(arguments[0], epoch.status());
    return ExitCodeOf(epoch.status());
  }
  const nlohmann::ordered_json json = {
      {"epoch", *epoch}, {"servers", asked.servers}, {"workers", asked.workers}};
  WriteAll(STDOUT_FILENO,
           scheduler.json ? absl::StrCat(json.dump(2), "\n")
                          : absl::StrCat("wanted since epoch ", *epoch,
                                         asked.wait ? ", and reached\n" : "; see covey status\n"));
  return kExitOk;
}

}  // namespace covey::cli

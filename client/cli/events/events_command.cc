// SPDX-License-Identifier: Apache-2.0
#include "client/cli/events/events_command.h"

#include <poll.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/events/events_view.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/runtime/process_main.h"

namespace covey::cli {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(500);

absl::StatusOr<proto::StatusReply> AskAndTake(StatusPoller& poller) {
  poller.Ask();
  // A call ends at its deadline.
  pollfd answered = {.fd = poller.descriptor(), .events = POLLIN, .revents = 0};
  while (true) {
    poll(&answered, 1, /*timeout=*/-1);
    if (auto status = poller.Take(); status.has_value()) return *std::move(status);
  }
}

// Until a signal, or until nobody reads any more. Tells once of each outage of the scheduler.
void Follow(absl::string_view command, StatusPoller& poller, EventPrinter& printer) {
  bool answered = true;
  while (!WaitForTermination(kPoll).has_value()) {
    const absl::StatusOr<proto::StatusReply> status = AskAndTake(poller);
    if (!status.ok() && answered) PrintFailure(command, status.status());
    answered = status.ok();
    if (answered && !WriteAll(STDOUT_FILENO, printer.Print(*status))) return;
  }
}

}  // namespace

int EventsCommand(int count, const char* const* arguments) {
  SchedulerOptions asked;
  EventFilter filter;
  bool follow = false;
  absl::Duration since = absl::InfiniteDuration();
  ConfigFile options(
      "covey events",
      "Shows the scheduler's decisions with their evidence, the newest last; times count from the "
      "scheduler's start. It keeps the newest 4,096, and says where some are missing. With -o json "
      "a line for each. Exit code: 0 ok, 1 refused, 3 no scheduler answers.");
  asked.AddTo(options);
  options.Add("follow", &follow, "go on with those to come, until Ctrl-C");
  options.Add("kind", &filter.kind,
              "only node, group, straggler, table, shards, snapshot, producer, work, job or other");
  options.Add("node", &filter.node, "only those that name it: worker-3, group-1, server-0");
  options.Add("since", &since, "only those of the last 10m, 2h");
  if (const auto code = asked.Load(options, count, arguments)) return *code;
  if (const absl::Status status = filter.Check(); !status.ok()) {
    PrintFailure(arguments[0], status);
    return kExitUsage;
  }
  if (since != absl::InfiniteDuration()) filter.since = since;

  EventPrinter printer(filter, asked.json ? EventFormat::kJson : EventFormat::kText);
  // Finds the scheduler that leads; the poller tries one at each call.
  const absl::StatusOr<proto::StatusReply> status = SchedulerStub(asked.target()).GetStatus();
  if (!status.ok()) {
    PrintFailure(arguments[0], status.status());
    return ExitCodeOf(status.status());
  }
  WriteAll(STDOUT_FILENO, printer.Print(*status));
  if (follow) {
    StatusPoller poller(asked.target());
    Follow(arguments[0], poller, printer);
  }
  return kExitOk;
}

}  // namespace covey::cli

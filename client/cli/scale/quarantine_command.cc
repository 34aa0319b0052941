// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scale/quarantine_command.h"

#include <unistd.h>

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/scale/quarantine_view.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

// The output.
absl::StatusOr<std::string> Run(SchedulerStub& scheduler, const proto::QuarantineRequest& request,
                                bool as_json) {
  COVEY_ASSIGN_OR_RETURN(const proto::QuarantineReply reply, scheduler.Quarantine(request));
  const absl::StatusOr<proto::StatusReply> status = scheduler.GetStatus();
  if (!status.ok()) {
    return Annotate(
        absl::StrCat("it is ", request.release() ? "released" : "quarantined", " since epoch ",
                     reply.epoch(), ", and covey status will show it; the tables are not known"),
        status.status());
  }
  return as_json ? QuarantineJson(request, reply, status->view())
                 : QuarantineText(request, reply, status->view());
}

}  // namespace

int QuarantineCommand(int count, const char* const* arguments) {
  SchedulerOptions scheduler;
  bool release = false;
  std::string reason;
  std::vector<std::string> words;
  ConfigFile options(
      "covey quarantine",
      "Quarantines a producer of pushes, or releases it. While a group or client is in quarantine, "
      "it trains on, but none of its pushes to tables with a gate (norm_gate) is applied; it takes "
      "effect within a second. A table whose gate has quarantine_after does the same by itself "
      "after that many pushes in a row beyond it. covey status shows producers in quarantine, the "
      "evidence against them, and pushes beyond gates. A producer that ends is forgotten. Exit "
      "code: 0 ok, 1 refused or failed, 3 no scheduler answers.");
  scheduler.AddTo(options);
  options.Add("release", &release, "release it: its pushes are applied again");
  options.Add("reason", &reason,
              "why, for those who see it in quarantine; by default \"by request\"");
  options.TakeRest(&words,
                   "PRODUCER   a group or a node as covey status names it: group-3, client-0");
  if (const auto code = scheduler.Load(options, count, arguments)) return *code;
  const auto wrong = [&](const char* message) {
    PrintFailure(arguments[0], absl::InvalidArgumentError(message));
    return kExitUsage;
  };
  if (words.size() != 1) return wrong("name one producer, as in: covey quarantine group-3");
  if (release && !reason.empty()) {
    return wrong("a release has no reason: leave --reason out, or --release");
  }
  proto::QuarantineRequest request;
  request.set_producer(words[0]);
  request.set_release(release);
  request.set_reason(reason);
  SchedulerStub stub(scheduler.target());
  const absl::StatusOr<std::string> output = Run(stub, request, scheduler.json);
  if (!output.ok()) {
    PrintFailure(arguments[0], output.status());
    return ExitCodeOf(output.status());
  }
  WriteAll(STDOUT_FILENO, *output);
  return kExitOk;
}

}  // namespace covey::cli

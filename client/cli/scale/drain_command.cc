// SPDX-License-Identifier: Apache-2.0
#include "client/cli/scale/drain_command.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

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
  std::string node;
  bool cancel = false;
  bool wait = false;
  absl::Duration timeout = absl::Minutes(10);
};

// The result of a drain.
struct Drained {
  uint64_t epoch = 0;
  std::string state;  // "draining", "left", "alive"
  double seconds = 0;
};

// Polls until the node has left. DEADLINE_EXCEEDED: it did not leave in time; ABORTED: it died, or
// stays.
absl::Status AwaitGone(SchedulerStub& scheduler, const Asked& asked) {
  const absl::Time until = MonotonicNow() + asked.timeout;
  uint32_t first_shards = 0;
  std::string last;
  for (;;) {
    COVEY_ASSIGN_OR_RETURN(const proto::StatusReply status, scheduler.GetStatus());
    const proto::Node* const node = FindNewest(status.view(), asked.node);
    if (node == nullptr || node->state() == proto::Node::LEFT) return absl::OkStatus();
    if (node->state() == proto::Node::DEAD) {
      return absl::AbortedError(absl::StrCat(asked.node, " died meanwhile: ", node->departure(),
                                             "; its replicas take over, see covey status"));
    }
    if (!node->draining()) {
      return absl::AbortedError(absl::StrCat(asked.node, " stays: the drain was canceled"));
    }
    first_shards = std::max(first_shards, ShardsOn(status.view(), node->id()));
    const std::string line = DrainLine(status.view(), *node, first_shards);
    if (line != last) WriteAll(STDERR_FILENO, absl::StrCat(line, "\n"));
    last = line;
    if (MonotonicNow() > until) {
      return absl::DeadlineExceededError(
          absl::StrCat(asked.node, " has not left within ", absl::FormatDuration(asked.timeout),
                       ": ", line, "; it is still draining, see covey status"));
    }
    if (WaitForTermination(kPoll).has_value()) {
      return absl::CancelledError("interrupted; it is still draining, see covey status");
    }
  }
}

absl::StatusOr<Drained> Run(SchedulerStub& scheduler, const Asked& asked) {
  const absl::Time start = MonotonicNow();
  proto::DrainRequest request;
  request.set_node(asked.node);
  request.set_cancel(asked.cancel);
  COVEY_ASSIGN_OR_RETURN(const proto::DrainReply reply, scheduler.Drain(request));
  Drained drained{.epoch = reply.epoch(), .state = asked.cancel ? "alive" : "draining"};
  if (asked.wait && !asked.cancel) {
    COVEY_RETURN_IF_ERROR(AwaitGone(scheduler, asked));
    drained.state = "left";
  }
  drained.seconds = absl::ToDoubleSeconds(MonotonicNow() - start);
  return drained;
}

std::string Text(const Asked& asked, const Drained& drained) {
  if (drained.state == "left") {
    return absl::StrCat(
        asked.node, " has left after ",
        absl::FormatDuration(absl::Milliseconds(static_cast<int64_t>(drained.seconds * 1000))),
        "\n");
  }
  return absl::StrCat(asked.node, asked.cancel ? " stays" : " drains", ", epoch ", drained.epoch,
                      "\n");
}

}  // namespace

int DrainCommand(int count, const char* const* arguments) {
  SchedulerOptions scheduler;
  Asked asked;
  std::vector<std::string> words;
  ConfigFile options(
      "covey drain",
      "Drains a server or worker: a server's shards move to other servers "
      "while traffic continues, a worker leaves between two steps of its group. Then "
      "its process ends by itself. Exit code: 0 ok, 1 refused or failed, 3 no "
      "scheduler answers.");
  scheduler.AddTo(options);
  options.Add("cancel", &asked.cancel, "cancel the drain: the node stays");
  options.Add("wait", &asked.wait, "wait until it has left; shows progress on standard error");
  options.Add("timeout", &asked.timeout, "with --wait: give up after this duration");
  options.TakeRest(&words, "NODE   as covey status names it: server-1, worker-3");
  if (const auto code = scheduler.Load(options, count, arguments)) return *code;
  if (words.size() != 1) {
    PrintFailure(arguments[0],
                 absl::InvalidArgumentError("name one node, as in: covey drain server-1"));
    return kExitUsage;
  }
  asked.node = words[0];
  SchedulerStub stub(scheduler.target());
  const absl::StatusOr<Drained> drained = Run(stub, asked);
  if (!drained.ok()) {
    PrintFailure(arguments[0], drained.status());
    return ExitCodeOf(drained.status());
  }
  const nlohmann::ordered_json json = {{"node", asked.node},
                                       {"epoch", drained->epoch},
                                       {"state", drained->state},
                                       {"seconds", drained->seconds}};
  WriteAll(STDOUT_FILENO,
           scheduler.json ? absl::StrCat(json.dump(2), "\n") : Text(asked, *drained));
  return kExitOk;
}

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/top/top_command.h"

#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/cli/console/command.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/signal_descriptor.h"
#include "client/cli/scheduler/scheduler_options.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "client/cli/status/status_view.h"
#include "client/cli/top/screen.h"
#include "client/cli/top/top_view.h"
#include "common/base/clock.h"

namespace covey::cli {
namespace {

// More than the rows of any terminal.
constexpr size_t kEventsKept = 500;

// The state of the screen: the newest reply of the scheduler, and the pane that the user chose.
class Top {
 public:
  Top(const SchedulerTarget& target, absl::Duration every, proto::StatusReply first)
      : poller_(target), every_(every), status_(std::move(first)) {}

  // Until the user quits.
  void Run(Screen& screen, SignalDescriptor& signals) {
    while (true) {
      Draw(screen);
      Await(signals);
      if (const auto reply = poller_.Take(); reply.has_value()) Take(*reply);
      if (MonotonicNow() >= next_ && !poller_.asking()) {
        next_ = MonotonicNow() + every_;
        poller_.Ask();
      }
      while (const auto signal = signals.Take()) {
        if (*signal != SIGWINCH) return;
        screen.Forget();
      }
      while (const auto key = screen.TakeKey()) {
        if (*key == 'q') return;
        Press(*key);
      }
    }
  }

 private:
  void Draw(Screen& screen) {
    std::tie(shown_.columns, shown_.rows) = screen.Size();
    std::vector<std::string> lines = TopLines(status_, shown_);
    if (!outage_.empty() && lines.size() > 1) {
      lines[1] = absl::StrCat("  OUT OF DATE: ", outage_).substr(0, shown_.columns);
    }
    screen.Draw(lines);
  }

  void Await(const SignalDescriptor& signals) const {
    pollfd polled[] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0},
                       {.fd = signals.descriptor(), .events = POLLIN, .revents = 0},
                       {.fd = poller_.descriptor(), .events = POLLIN, .revents = 0}};
    const absl::Duration left = poller_.asking() ? every_ : next_ - MonotonicNow();
    poll(polled, std::size(polled),
         static_cast<int>(std::clamp<int64_t>(absl::ToInt64Milliseconds(left) + 1, 1, 1000)));
  }

  void Take(const absl::StatusOr<proto::StatusReply>& reply) {
    if (!reply.ok()) {
      outage_ = std::string(reply.status().message());
      return;
    }
    outage_.clear();
    proto::StatusReply next = *reply;
    if (next.uptime_ms() >= status_.uptime_ms()) {
      // The poller's first reply has all events again.
      const uint64_t last = status_.events().empty() ? 0 : status_.events().rbegin()->sequence();
      next.mutable_events()->Swap(status_.mutable_events());
      for (const proto::Event& event : reply->events()) {
        if (event.sequence() > last) *next.add_events() = event;
      }
    }
    KeepLastEvents(next, kEventsKept);
    status_ = std::move(next);
  }

  void Press(char key) {
    if (key >= '1' && key <= '4') shown_.pane = static_cast<TopPane>(key - '1');
    if (key == 's') {
      shown_.order =
          shown_.order == TopOrder::kByName ? TopOrder::kSlowestFirst : TopOrder::kByName;
    }
  }

  StatusPoller poller_;
  const absl::Duration every_;
  proto::StatusReply status_;
  std::string outage_;  // empty = the last request was answered
  TopScreen shown_;
  absl::Time next_ = absl::InfinitePast();
};

}  // namespace

int TopCommand(int count, const char* const* arguments) {
  SchedulerOptions asked;
  absl::Duration every = absl::Seconds(1);
  bool once = false;
  ConfigFile options(
      "covey top",
      "Shows a cluster as it is now: health, groups and their workers, nodes and queues, tables, "
      "events. Keys: 1 to 4 choose what, s sorts, q quits. Where the output is no terminal, or "
      "with "
      "--once, everything once. Exit code: 0 ok, 1 refused, 3 no scheduler answers.");
  asked.AddTo(options);
  options.Add("every", &every, "time between two looks, at least 100ms");
  options.Add("once", &once, "everything once, as plain text");
  if (const auto code = asked.Load(options, count, arguments)) return *code;
  every = std::max(every, absl::Milliseconds(100));
  const bool is_live = !once && !asked.json && isatty(STDOUT_FILENO) && isatty(STDIN_FILENO);
  // Before the first call starts threads.
  std::optional<SignalDescriptor> signals;
  if (is_live) signals.emplace({SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGWINCH});

  const absl::StatusOr<proto::StatusReply> first = SchedulerStub(asked.target()).GetStatus();
  if (!first.ok()) {
    PrintFailure(arguments[0], first.status());
    return ExitCodeOf(first.status());
  }
  if (!is_live) {
    WriteAll(STDOUT_FILENO, asked.json ? StatusJson(*first) : TopText(*first));
    return kExitOk;
  }
  Screen screen;
  Top(asked.target(), every, *first).Run(screen, *signals);
  return kExitOk;
}

}  // namespace covey::cli

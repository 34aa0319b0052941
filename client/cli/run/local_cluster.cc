// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/local_cluster.h"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/cli/model/model_export.h"
#include "client/cli/process/signal_descriptor.h"
#include "client/cli/report/event_files.h"
#include "client/cli/run/run_display.h"
#include "client/cli/run/run_fleet.h"
#include "client/cli/run/status_follower.h"
#include "common/base/clock.h"

namespace covey::cli {
namespace {

// Interval between checks whether the scheduler listens.
constexpr absl::Duration kStartPoll = absl::Milliseconds(20);

// The loop of the launcher: waits for signals, output, the scheduler's replies, and times.
class LocalCluster {
 public:
  LocalCluster(const RunOptions& options, const LocalPaths& paths, Terminal& terminal)
      : options_(options),
        start_(MonotonicNow()),
        display_(options, terminal),
        fleet_(options, paths, start_, display_, outcome_.incidents) {
    if (!options.events_folder.empty()) events_.emplace(options.events_folder, absl::Now());
  }

  RunOutcome Run();

 private:
  // Does all work that is due.
  void Step(absl::Time now);
  // Waits for the next event, at most until `until`, and handles it.
  void Wait(absl::Time until);
  absl::Time NextWake(absl::Time now) const;
  void TakeSignals(absl::Time now);
  void FollowStatus(absl::Time now);
  void TakeStatus(absl::Time now, const proto::StatusReply& status);
  // Writes the curves; after a failure no more.
  void WriteEvents();
  // Writes the model, while nothing else is done: all programs have ended.
  void Export();
  // Whether the final status is awaited before the cluster stops.
  bool AwaitsFinalStatus(absl::Time now);

  const RunOptions& options_;
  const absl::Time start_;
  // Ends of processes, and signals by which a person ends the run.
  SignalDescriptor signals_{SIGCHLD, SIGHUP, SIGINT, SIGTERM};
  bool interrupted_ = false;  // by a person
  bool exported_ = false;
  RunOutcome outcome_;
  RunDisplay display_;
  RunFleet fleet_;
  // From the start of servers and workers until the scheduler is told to end.
  std::optional<StatusFollower> status_;
  // Absent where no event files are wanted, or could not be written.
  std::optional<EventFiles> events_;
};

RunOutcome LocalCluster::Run() {
  RunSupervisor& supervisor = fleet_.supervisor();
  if (const absl::Status status = fleet_.StartScheduler(); !status.ok()) {
    supervisor.Fail(status.message(), MonotonicNow());
  }
  while (!supervisor.finished()) {
    const absl::Time now = MonotonicNow();
    Step(now);
    display_.Redraw();
    Wait(NextWake(now));
  }
  status_.reset();
  display_.HideProgress();
  if (fleet_.failed().has_value()) {
    display_.ShowLastLines(fleet_.processes()[*fleet_.failed()]);
  }
  outcome_.result = display_.result();
  outcome_.step_sentence = display_.step_sentence();
  outcome_.status = supervisor.outcome();
  outcome_.wall = MonotonicNow() - start_;
  return std::move(outcome_);
}

void LocalCluster::Step(absl::Time now) {
  RunSupervisor& supervisor = fleet_.supervisor();
  if (now >= start_ + options_.timeout && !supervisor.stopping()) {
    supervisor.Fail(
        absl::StrCat("the run took longer than --timeout ", absl::FormatDuration(options_.timeout)),
        now);
  }
  if (!fleet_.others_started()) {
    fleet_.StartOthersWhenPossible(now);
    // gRPC starts threads, which a forked child lacks: so the first processes are started before. A
    // child that is forked later calls nothing that those threads could hold.
    if (fleet_.others_started() && !supervisor.stopping()) {
      status_.emplace(SchedulerTarget{.addresses = fleet_.processes().address(),
                                      .tls = options_.TlsOf(IdentityRole::kViewer)});
    }
  }
  if (status_.has_value()) FollowStatus(now);
  fleet_.StartDue(now);
  if (supervisor.idle() && supervisor.outcome().ok() && !options_.export_file.empty() &&
      !exported_) {
    Export();
  }
  if (!AwaitsFinalStatus(now)) fleet_.SendSignals(now);
}

absl::Time LocalCluster::NextWake(absl::Time now) const {
  absl::Time next = fleet_.NextWake();
  if (!fleet_.supervisor().stopping()) next = std::min(next, start_ + options_.timeout);
  // Until the final status is there, the supervisor's signals are not sent.
  if (status_.has_value()) next = status_->final_deadline().value_or(next);
  if (!fleet_.others_started()) next = std::min(next, now + kStartPoll);
  if (status_.has_value()) next = std::min(next, status_->next_request());
  return next;
}

void LocalCluster::Wait(absl::Time until) {
  std::vector<pollfd> polled = {{.fd = signals_.descriptor(), .events = POLLIN, .revents = 0}};
  // A negative descriptor is skipped.
  polled.push_back(
      {.fd = status_.has_value() ? status_->descriptor() : -1, .events = POLLIN, .revents = 0});
  const size_t first_stream = polled.size();
  fleet_.processes().AddTo(polled);
  const absl::Duration left =
      std::clamp(until - MonotonicNow(), absl::ZeroDuration(), absl::Hours(1));
  // Rounded up, or the last millisecond would be spent spinning.
  poll(polled.data(), polled.size(), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);

  fleet_.processes().Read(std::span(polled).subspan(first_stream));
  if (polled[0].revents != 0) TakeSignals(MonotonicNow());
}

void LocalCluster::TakeSignals(absl::Time now) {
  RunSupervisor& supervisor = fleet_.supervisor();
  while (const std::optional<int> signal = signals_.Take()) {
    if (*signal == SIGCHLD) continue;
    interrupted_ = true;
    display_.Say(supervisor.stopping() ? "killing the remaining processes"
                                       : "stopping after the current step; a second signal kills");
    supervisor.Interrupt(*signal, now);
  }
  // Several signals of a kind arrive as one, so the sender is unknown.
  if (fleet_.Reap(now) && status_.has_value()) status_->RequestSoon(now);
}

void LocalCluster::FollowStatus(absl::Time now) {
  // The scheduler was told to end, or has ended: no process is left to query.
  if (fleet_.scheduler_was_stopped() || fleet_.supervisor().finished()) {
    status_.reset();
    return;
  }
  status_->Follow(now, [&](const proto::StatusReply& status) { TakeStatus(now, status); });
}

void LocalCluster::TakeStatus(absl::Time now, const proto::StatusReply& status) {
  const absl::Duration elapsed = now - start_;
  outcome_.history.Add(elapsed, status);
  outcome_.at_risk = status.at_risk();
  WriteEvents();
  for (const GroupHistory& group : outcome_.history.groups()) {
    if (!group.points.empty()) fleet_.TrainingHasBegun(now);
  }
  // Events after processes were told to end are no incidents.
  if (!status_->had_final() && fleet_.supervisor().outcome().ok()) {
    outcome_.incidents.See(absl::ToDoubleSeconds(elapsed), status);
  }
  fleet_.TakeView(now, status.view());
  if (!fleet_.supervisor().stopping()) display_.ShowProgress(now, elapsed, status);
}

void LocalCluster::WriteEvents() {
  if (!events_.has_value()) return;
  if (const absl::Status written = events_->Write(outcome_.history); !written.ok()) {
    display_.Say(absl::StrCat("--events: ", written.message(), "; no more curves are written"));
    events_.reset();
  }
}

void LocalCluster::Export() {
  exported_ = true;
  const absl::StatusOr<ExportedModel> model = ExportModel(
      {.addresses = fleet_.processes().address(), .tls = options_.TlsOf(IdentityRole::kClient)},
      options_.job, {.path = options_.export_file},
      [this](absl::string_view line) { display_.Say(line); });
  if (!model.ok()) {
    fleet_.supervisor().Fail(absl::StrCat("--export: ", model.status().message()), MonotonicNow());
    return;
  }
  display_.Say(DescribeExport(options_.export_file, *model));
}

bool LocalCluster::AwaitsFinalStatus(absl::Time now) {
  return status_.has_value() && !interrupted_ && fleet_.supervisor().idle() &&
         status_->AwaitsFinal(now);
}

}  // namespace

RunOutcome RunLocalCluster(const RunOptions& options, const LocalPaths& binaries,
                           Terminal& terminal) {
  return LocalCluster(options, binaries, terminal).Run();
}

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/local_cluster.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/console/text_file.h"
#include "client/cli/process/child_output.h"
#include "client/cli/process/child_process.h"
#include "client/cli/run/progress_view.h"
#include "client/cli/run/restart_limit.h"
#include "client/cli/run/run_supervisor.h"
#include "client/cli/scheduler/scheduler_stub.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/status_macros.h"
#include "common/faults/fault_schedule.h"

namespace covey::cli {
namespace {

using Role = RunSupervisor::Role;
using Stream = ChildProcess::Stream;

// How long the scheduler may take until it listens.
constexpr absl::Duration kStartMax = absl::Seconds(20);
// Interval between checks whether it does.
constexpr absl::Duration kStartPoll = absl::Milliseconds(20);
constexpr absl::Duration kStatusPoll = absl::Milliseconds(500);
constexpr absl::Duration kProgressLine = absl::Seconds(2);
// Delay before a process is restarted, and the shortest interval between restarts of one role.
constexpr absl::Duration kRestartAfter = absl::Milliseconds(500);
// How long the final status request may take, after the work has finished.
constexpr absl::Duration kLastLookMax = absl::Seconds(1);
// Time within which a process that was declared dead should learn of it and end by itself.
constexpr absl::Duration kDeadMax = absl::Seconds(1);
constexpr char kOwnLabel[] = "covey";

struct Member {
  Role role;
  uint32_t rank;
  absl::Time started;
  std::unique_ptr<ChildProcess> process;
  std::unique_ptr<ChildOutput> output;
  absl::Time declared_dead = absl::InfiniteFuture();
};

class LocalCluster {
 public:
  LocalCluster(const RunOptions& options, LocalPaths paths, Terminal& terminal)
      : options_(options),
        paths_(std::move(paths)),
        terminal_(terminal),
        supervisor_(options.grace, options.on_failure == RunOptions::OnFailure::kStop
                                       ? RunSupervisor::OnLoss::kStop
                                       : RunSupervisor::OnLoss::kGoOn),
        faults_(options.faults),
        start_(MonotonicNow()) {}

  RunOutcome Run();

 private:
  absl::Status Prepare();
  absl::Status Start(Role role, uint32_t rank);
  Program ProgramOf(Role role, uint32_t rank) const;
  // Starts servers and workers once the scheduler listens.
  absl::Status StartOthers(absl::string_view port);
  void AwaitPort(absl::Time now);

  // Waits for the next event, at most until `until`, and handles it.
  void Wait(absl::Time until);
  absl::Time NextWake(absl::Time now) const;
  void ReadSignals(absl::Time now);
  void TakeLine(size_t number, Stream stream, absl::string_view line);
  void TakeResult(const std::string& worker, absl::string_view text);
  void ReapChildren(absl::Time now);
  // Whether another process replaces this one, which has ended.
  bool ComesBack(size_t number, const ChildExit& exit, absl::Time now);
  void SendSignals(absl::Time now);
  void FollowProgress(absl::Time now);
  void TakeStatus(absl::Time now, const proto::StatusReply& status);
  // Whether to request the status once more, after the work has finished and before the cluster
  // stops.
  bool LooksOnceMore(absl::Time now);
  // Kills declared-dead processes that hang and are no longer waited for.
  void FollowDead(absl::Time now, const proto::ClusterView& view);
  // Injects the planned faults.
  void InjectFaults(absl::Time now);
  // The running process of this name, if any.
  std::optional<size_t> FindRunning(absl::string_view name) const;
  void Kill(absl::string_view name, absl::string_view why);
  void StartAgain(absl::Time now);
  // Starts the processes that are missing from the numbers that the view asks for.
  void FollowWanted(absl::Time now, const proto::ClusterView& view);
  void StartMissing(absl::Time now, Role role, uint32_t wanted, const proto::ClusterView& view);
  double Elapsed(absl::Time now) const { return absl::ToDoubleSeconds(now - start_); }
  bool ShowsEverything() const { return options_.show == RunOptions::Show::kEverything; }
  void Say(absl::string_view line) { terminal_.Print(Terminal::Stream::kError, kOwnLabel, line); }

  const RunOptions& options_;
  LocalPaths paths_;
  Terminal& terminal_;
  RunSupervisor supervisor_;
  FaultSchedule faults_;
  const absl::Time start_;
  // The time of the first training step, from which fault times count.
  std::optional<absl::Time> training_since_;
  std::unique_ptr<TemporaryFolder> folder_;
  std::vector<Member> members_;  // numbered as in the supervisor; the first scheduler first
  size_t scheduler_ = 0;
  std::string address_;  // of the scheduler
  // A process to restart, and when.
  struct Restart {
    absl::Time at;
    Role role;
    uint32_t rank;
  };
  std::vector<Restart> restarts_;
  // Processes that end because of a fault and are restarted; true: at once.
  std::map<std::string, bool> coming_back_;
  bool ended_well_ = false;  // some worker has
  RestartLimit restart_limit_;
  bool scheduler_answers_ = false;  // the present one has answered
  absl::Time next_missing_ = absl::InfinitePast();
  int signals_ = -1;
  int signals_seen_ = 0;
  bool others_started_ = false;
  // The member that failed first.
  std::optional<size_t> failed_;

  std::unique_ptr<StatusPoller> poller_;
  absl::Time asked_ = absl::InfinitePast();
  // The time when the work finished; and whether the final status has arrived.
  std::optional<absl::Time> idle_since_;
  bool has_looked_ = false;
  absl::Time next_status_ = absl::InfinitePast();
  absl::Time next_progress_line_ = absl::InfinitePast();
  RunOutcome outcome_;
};

RunOutcome LocalCluster::Run() {
  if (const absl::Status status = Prepare(); !status.ok()) {
    supervisor_.Fail(status.message(), MonotonicNow());
  }
  while (!supervisor_.finished()) {
    const absl::Time now = MonotonicNow();
    if (now >= start_ + options_.timeout && !supervisor_.stopping()) {
      supervisor_.Fail(absl::StrCat("the run took longer than --timeout ",
                                    absl::FormatDuration(options_.timeout)),
                       now);
    }
    if (!others_started_ && !supervisor_.stopping()) AwaitPort(now);
    if (poller_ != nullptr) FollowProgress(now);
    InjectFaults(now);
    StartAgain(now);
    if (!LooksOnceMore(now)) SendSignals(now);
    terminal_.Redraw();
    Wait(NextWake(now));
  }
  poller_.reset();
  terminal_.SetBlock({});
  if (failed_.has_value()) {
    const Member& member = members_[*failed_];
    const std::string& name = member.process->name();
    if (!member.output->last_lines().empty()) Say(absl::StrCat("last lines of ", name, ":"));
    for (const std::string& line : member.output->last_lines()) {
      terminal_.Print(Terminal::Stream::kError, name, line);
    }
  }
  if (signals_ >= 0) close(signals_);
  outcome_.status = supervisor_.outcome();
  outcome_.wall = MonotonicNow() - start_;
  return std::move(outcome_);
}

absl::Status LocalCluster::Prepare() {
  sigset_t handled;
  sigemptyset(&handled);
  for (const int signal : {SIGCHLD, SIGHUP, SIGINT, SIGTERM}) sigaddset(&handled, signal);
  sigprocmask(SIG_BLOCK, &handled, nullptr);
  signals_ = signalfd(-1, &handled, SFD_CLOEXEC | SFD_NONBLOCK);
  COVEY_CHECK(signals_ >= 0);

  if (!options_.log_folder.empty()) COVEY_RETURN_IF_ERROR(MakeFolder(options_.log_folder));
  COVEY_ASSIGN_OR_RETURN(folder_, TemporaryFolder::Make());
  paths_.port_file = absl::StrCat(folder_->path(), "/port");
  paths_.scheduler_log = absl::StrCat(folder_->path(), "/decisions");
  return Start(Role::kScheduler, 0);
}

Program LocalCluster::ProgramOf(Role role, uint32_t rank) const {
  switch (role) {
    case Role::kScheduler:
      return SchedulerProgram(options_, paths_);
    case Role::kServer:
      return ServerProgram(options_, paths_, address_, rank);
    case Role::kWorker:
      return WorkerProgram(options_, address_, rank);
  }
  return {};
}

absl::Status LocalCluster::Start(Role role, uint32_t rank) {
  const Program program = ProgramOf(role, rank);
  const uint32_t group = role == Role::kWorker ? rank / options_.workers_per_group : 0;
  std::unique_ptr<LogFile> log;
  if (!options_.log_folder.empty()) {
    const std::string path = absl::StrCat(options_.log_folder, "/", program.name, ".log");
    // The output of the previous process says why it ended.
    const bool is_again = std::any_of(
        members_.begin(), members_.end(),
        [&program](const Member& member) { return member.process->name() == program.name; });
    COVEY_ASSIGN_OR_RETURN(log, LogFile::Open(path, is_again ? LogFile::Existing::kKept
                                                             : LogFile::Existing::kEmptied));
  }
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> process, ChildProcess::Start(program));
  const size_t number = supervisor_.Add(role, group, process->name(), process->pid());
  auto output = std::make_unique<ChildOutput>(
      *process, std::move(log),
      [this, number](Stream stream, absl::string_view line) { TakeLine(number, stream, line); });
  members_.push_back({.role = role,
                      .rank = rank,
                      .started = MonotonicNow(),
                      .process = std::move(process),
                      .output = std::move(output)});
  if (role == Role::kScheduler) {
    scheduler_ = number;
    scheduler_answers_ = false;
  }
  return absl::OkStatus();
}

absl::Status LocalCluster::StartOthers(absl::string_view port) {
  address_ = absl::StrCat("127.0.0.1:", port);
  // A restarted scheduler must listen at the same port.
  if (!absl::SimpleAtoi(port, &paths_.port)) {
    return absl::InternalError(absl::StrCat("the scheduler's port is '", port, "'"));
  }
  if (ShowsEverything()) {
    Say(absl::StrCat("scheduler at ", address_, "; look at it with: covey status --scheduler ",
                     address_));
  }
  for (uint32_t rank = 0; rank < options_.servers; ++rank) {
    COVEY_RETURN_IF_ERROR(Start(Role::kServer, rank));
  }
  for (uint32_t rank = 0; rank < options_.workers(); ++rank) {
    COVEY_RETURN_IF_ERROR(Start(Role::kWorker, rank));
  }
  // gRPC starts threads; a child that is forked later calls nothing that they could hold.
  poller_ = std::make_unique<StatusPoller>(address_);
  supervisor_.AllStarted();
  return absl::OkStatus();
}

void LocalCluster::AwaitPort(absl::Time now) {
  const absl::StatusOr<std::string> text = ReadTextFile(paths_.port_file);
  const absl::string_view port =
      text.ok() ? absl::StripAsciiWhitespace(*text) : absl::string_view();
  if (!port.empty()) {
    others_started_ = true;
    if (const absl::Status status = StartOthers(port); !status.ok()) {
      supervisor_.Fail(status.message(), now);
    }
  } else if (now >= start_ + kStartMax) {
    supervisor_.Fail(absl::StrCat("the scheduler (", paths_.scheduler_binary,
                                  ") did not listen within ", absl::FormatDuration(kStartMax)),
                     now);
  }
}

absl::Time LocalCluster::NextWake(absl::Time now) const {
  absl::Time next = std::min(supervisor_.NextWake(), start_ + options_.timeout);
  if (supervisor_.stopping()) next = supervisor_.NextWake();
  if (idle_since_.has_value() && !has_looked_) next = *idle_since_ + kLastLookMax;
  if (!others_started_) next = std::min(next, now + kStartPoll);
  if (poller_ != nullptr && !poller_->asking()) next = std::min(next, next_status_);
  if (supervisor_.stopping()) return next;
  for (const Restart& restart : restarts_) next = std::min(next, restart.at);
  if (training_since_.has_value()) next = std::min(next, *training_since_ + faults_.NextAt());
  return next;
}

void LocalCluster::Wait(absl::Time until) {
  std::vector<pollfd> polled = {{.fd = signals_, .events = POLLIN, .revents = 0}};
  // A negative descriptor is skipped.
  polled.push_back(
      {.fd = poller_ != nullptr ? poller_->descriptor() : -1, .events = POLLIN, .revents = 0});
  const size_t first_stream = polled.size();
  for (const Member& member : members_) {
    for (const Stream stream : {Stream::kOutput, Stream::kError}) {
      polled.push_back({.fd = member.process->descriptor(stream), .events = POLLIN, .revents = 0});
    }
  }
  const absl::Duration left =
      std::clamp(until - MonotonicNow(), absl::ZeroDuration(), absl::Hours(1));
  // Rounded up, or the last millisecond would be spent spinning.
  poll(polled.data(), polled.size(), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);

  for (size_t i = first_stream; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    const Member& member = members_[(i - first_stream) / 2];
    member.output->Read((i - first_stream) % 2 == 0 ? Stream::kOutput : Stream::kError);
  }
  if (polled[0].revents != 0) ReadSignals(MonotonicNow());
}

void LocalCluster::ReadSignals(absl::Time now) {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    ++signals_seen_;
    Say(supervisor_.stopping() ? "killing the remaining processes"
                               : "stopping after the current step; a second signal kills");
    supervisor_.Interrupt(signal, now);
  }
  // Several signals of a kind arrive as one, so the sender is unknown.
  ReapChildren(now);
}

void LocalCluster::TakeLine(size_t number, Stream stream, absl::string_view line) {
  const Member& member = members_[number];
  const bool is_program = member.role == Role::kWorker;
  // The scheduler reports the same for all groups at once.
  if (is_program && absl::StartsWith(line, "progress {")) return;
  // Once the work is done, the output of the cluster's shutdown is of no interest.
  const bool is_idle = !is_program && supervisor_.idle() && supervisor_.outcome().ok();
  if ((ShowsEverything() && !is_idle) || (is_program && stream == Stream::kError)) {
    terminal_.Print(
        stream == Stream::kOutput ? Terminal::Stream::kOutput : Terminal::Stream::kError,
        member.process->name(), line);
  }
  if (is_program && stream == Stream::kOutput && absl::ConsumePrefix(&line, "result ")) {
    TakeResult(member.process->name(), line);
  }
}

void LocalCluster::TakeResult(const std::string& worker, absl::string_view text) {
  const auto json = nlohmann::json::parse(text.begin(), text.end(), nullptr,
                                          /*allow_exceptions=*/false);
  if (json.is_object()) {
    outcome_.result = std::string(text);
  } else {
    Say(absl::StrCat("what ", worker,
                     " printed after 'result' is not a JSON object and is ignored"));
  }
}

void LocalCluster::ReapChildren(absl::Time now) {
  for (size_t number = 0; number < members_.size(); ++number) {
    const Member& member = members_[number];
    if (!member.process->running()) continue;
    const std::optional<ChildExit> exit = member.process->Reap();
    if (!exit.has_value()) continue;
    member.output->Finish();
    const bool had_failed = !supervisor_.outcome().ok();
    const std::string& name = member.process->name();
    const bool was_stopped = supervisor_.WasStopped(number);
    if (!was_stopped && !exit->ok()) outcome_.incidents.Died(Elapsed(now), name, Describe(*exit));
    const bool comes_back = ComesBack(number, *exit, now);
    if (comes_back) supervisor_.Replace(number);
    if (!was_stopped && !(exit->ok() && member.role == Role::kWorker)) {
      const bool is_away = comes_back && member.role == Role::kScheduler;
      Say(absl::StrCat(name, " (pid ", member.process->pid(), ") ", Describe(*exit),
                       is_away ? "; training continues while it restarts" : ""));
    }
    supervisor_.Exited(number, *exit, now);
    if (!had_failed && !supervisor_.outcome().ok()) failed_ = number;
    if (member.role == Role::kWorker && exit->ok()) {
      // Training will end soon.
      ended_well_ = true;
      supervisor_.GiveUpWorkers(now);
    }
    next_status_ = now;
  }
}

bool LocalCluster::ComesBack(size_t number, const ChildExit& exit, absl::Time now) {
  const Member& member = members_[number];
  const std::string& name = member.process->name();
  const auto planned = coming_back_.find(name);
  const bool is_planned = planned != coming_back_.end();
  const bool at_once = is_planned && planned->second;
  if (is_planned) coming_back_.erase(planned);
  if (supervisor_.stopping() || supervisor_.WasStopped(number)) return false;
  if (member.role == Role::kWorker && ended_well_) return false;
  if (is_planned && !at_once) return true;
  if (!is_planned) {
    // A scheduler that never answered would fail again at the next attempt.
    const bool wanted =
        member.role == Role::kScheduler
            ? options_.on_failure != RunOptions::OnFailure::kStop && scheduler_answers_
            : options_.on_failure == RunOptions::OnFailure::kRestart && !exit.ok();
    if (!wanted || !others_started_) return false;
    if (!restart_limit_.Allows(name, now - member.started)) {
      Say(absl::StrCat(name, " has ended ", RestartLimit::kQuickEndsMax, " times within ",
                       absl::FormatDuration(RestartLimit::kQuick),
                       " of its start: it is not restarted"));
      return false;
    }
  }
  restarts_.push_back({.at = now + kRestartAfter, .role = member.role, .rank = member.rank});
  return true;
}

void LocalCluster::SendSignals(absl::Time now) {
  for (const RunSupervisor::SignalTo& sent : supervisor_.TakeSignals(now)) {
    ChildProcess& process = *members_[sent.child].process;
    if (sent.signal == SIGKILL) Say(absl::StrCat(process.name(), " does not stop: killing it"));
    process.Signal(sent.signal);
    // A stopped process would never receive it.
    if (sent.signal == SIGTERM) process.Signal(SIGCONT);
  }
}

bool LocalCluster::LooksOnceMore(absl::Time now) {
  if (poller_ == nullptr || has_looked_ || signals_seen_ > 0 || !supervisor_.idle()) return false;
  if (!idle_since_.has_value()) {
    idle_since_ = now;
    next_status_ = now;
  }
  if (now >= *idle_since_ + kLastLookMax) has_looked_ = true;
  return !has_looked_;
}

void LocalCluster::FollowProgress(absl::Time now) {
  // The scheduler was told to end, or has ended: no process is left to query.
  if (supervisor_.WasStopped(scheduler_) || supervisor_.finished()) {
    poller_.reset();
    return;
  }
  if (const auto status = poller_->Take(); status.has_value()) {
    if (status->ok()) TakeStatus(now, **status);
    if (idle_since_.has_value() && asked_ >= *idle_since_) has_looked_ = true;
  }
  if (now >= next_status_ && !poller_->asking()) {
    next_status_ = now + kStatusPoll;
    asked_ = now;
    poller_->Ask();
  }
}

void LocalCluster::TakeStatus(absl::Time now, const proto::StatusReply& status) {
  const absl::Duration elapsed = now - start_;
  scheduler_answers_ = true;
  outcome_.history.Add(elapsed, status);
  for (const GroupHistory& group : outcome_.history.groups()) {
    if (!training_since_.has_value() && !group.points.empty()) training_since_ = now;
  }
  // Events after processes were told to end are no incidents.
  if (!has_looked_ && supervisor_.outcome().ok()) outcome_.incidents.See(Elapsed(now), status);
  FollowDead(now, status.view());
  if (supervisor_.stopping()) return;
  FollowWanted(now, status.view());
  if (!ShowsEverything()) {
    // The caller shows progress of its own.
  } else if (terminal_.interactive()) {
    terminal_.SetBlock(ProgressBlock(status, elapsed, terminal_.block_lines_max()));
  } else if (now >= next_progress_line_) {
    next_progress_line_ = now + kProgressLine;
    Say(ProgressLine(status, elapsed));
  }
}

void LocalCluster::FollowDead(absl::Time now, const proto::ClusterView& view) {
  std::set<uint64_t> dead;
  for (const proto::Node& node : view.nodes()) {
    if (node.state() == proto::Node::DEAD) dead.insert(node.process_id());
  }
  for (Member& member : members_) {
    if (!member.process->running() ||
        !dead.contains(static_cast<uint64_t>(member.process->pid()))) {
      continue;
    }
    if (member.declared_dead == absl::InfiniteFuture()) member.declared_dead = now;
    // Its place is needed, or the others have ended and it is the last one.
    const bool is_in_the_way = options_.on_failure == RunOptions::OnFailure::kRestart ||
                               (member.role == Role::kWorker && ended_well_);
    if (is_in_the_way && now >= member.declared_dead + kDeadMax) {
      Kill(member.process->name(), "declared dead, but it does not end");
    }
  }
}

std::optional<size_t> LocalCluster::FindRunning(absl::string_view name) const {
  for (size_t number = 0; number < members_.size(); ++number) {
    const ChildProcess& process = *members_[number].process;
    if (process.running() && process.name() == name) return number;
  }
  return std::nullopt;
}

void LocalCluster::Kill(absl::string_view name, absl::string_view why) {
  const std::optional<size_t> number = FindRunning(name);
  if (!number.has_value()) return;
  Say(absl::StrCat("killing ", name, ": ", why));
  members_[*number].process->Signal(SIGKILL);
}

void LocalCluster::InjectFaults(absl::Time now) {
  if (!training_since_.has_value() || supervisor_.stopping()) return;
  for (const FaultSchedule::Action& action : faults_.Due(now - *training_since_)) {
    const Fault& fault = action.fault;
    const std::optional<size_t> number = FindRunning(fault.target);
    if (fault.kind == FaultKind::kStop) {
      if (!number.has_value()) continue;
      const absl::string_view what = action.begins ? "stopped" : "resumed";
      Say(absl::StrCat(fault.target, " ", what, ", as planned"));
      outcome_.incidents.Note(Elapsed(now), fault.target, absl::StrCat(what, ", as planned"));
      members_[*number].process->Signal(action.begins ? SIGSTOP : SIGCONT);
      continue;
    }
    const bool comes_back =
        fault.kind == FaultKind::kRestart || fault.duration != absl::InfiniteDuration();
    if (action.begins) {
      if (comes_back && number.has_value()) {
        coming_back_[fault.target] = fault.kind == FaultKind::kRestart;
      }
      Kill(fault.target, comes_back ? "as planned, it will be restarted" : "as planned");
    } else {
      for (const Member& member : members_) {
        if (member.process->name() != fault.target) continue;
        restarts_.push_back({.at = now, .role = member.role, .rank = member.rank});
        break;
      }
    }
  }
}

void LocalCluster::StartAgain(absl::Time now) {
  for (const Restart& restart : std::exchange(restarts_, {})) {
    if (supervisor_.stopping()) return;
    const std::string name = ProgramOf(restart.role, restart.rank).name;
    if (FindRunning(name).has_value()) continue;
    if (restart.at > now) {
      restarts_.push_back(restart);
      continue;
    }
    // A worker that starts this late finds nothing to do.
    if (restart.role == Role::kWorker && ended_well_) continue;
    const absl::Status started = Start(restart.role, restart.rank);
    Say(started.ok() ? absl::StrCat("restarted ", name) : std::string(started.message()));
    if (!started.ok()) supervisor_.GiveUp(name, now);
    outcome_.incidents.Note(Elapsed(now), name, started.ok() ? "restarted" : "cannot be restarted");
  }
}

void LocalCluster::FollowWanted(absl::Time now, const proto::ClusterView& view) {
  if (now < next_missing_) return;
  if (view.wanted_servers() > 0) StartMissing(now, Role::kServer, view.wanted_servers(), view);
  // Once a worker has ended, training will end soon.
  if (view.wanted_workers() > 0 && !ended_well_) {
    StartMissing(now, Role::kWorker, view.wanted_workers(), view);
  }
}

void LocalCluster::StartMissing(absl::Time now, Role role, uint32_t wanted,
                                const proto::ClusterView& view) {
  std::set<uint64_t> draining;
  for (const proto::Node& node : view.nodes()) {
    if (node.draining() && node.state() == proto::Node::ALIVE) draining.insert(node.process_id());
  }
  std::set<uint32_t> ranks;
  uint32_t staying = 0;
  for (const Member& member : members_) {
    if (member.role != role || !member.process->running()) continue;
    ranks.insert(member.rank);
    if (!draining.contains(static_cast<uint64_t>(member.process->pid()))) ++staying;
  }
  for (const Restart& restart : restarts_) {
    if (restart.role == role && ranks.insert(restart.rank).second) ++staying;
  }
  for (uint32_t rank = 0; staying < std::min(wanted, kProcessesMax); ++rank) {
    if (ranks.contains(rank)) continue;
    ++staying;
    // Keeps a process that cannot run from being restarted without a pause.
    next_missing_ = now + 2 * kRestartAfter;
    const std::string name = ProgramOf(role, rank).name;
    const absl::Status started = Start(role, rank);
    Say(started.ok() ? absl::StrCat("started ", name, ": ", wanted, " are wanted")
                     : std::string(started.message()));
    if (started.ok()) outcome_.incidents.Note(Elapsed(now), name, "started: more are wanted");
  }
}

}  // namespace

RunOutcome RunLocalCluster(const RunOptions& options, const LocalPaths& binaries,
                           Terminal& terminal) {
  return LocalCluster(options, binaries, terminal).Run();
}

}  // namespace covey::cli

#include "client/cli/local_cluster.h"

#include <poll.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "client/cli/child_output.h"
#include "client/cli/child_process.h"
#include "client/cli/progress_view.h"
#include "client/cli/run_supervisor.h"
#include "client/cli/scheduler_stub.h"
#include "client/cli/text_file.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

using Role = RunSupervisor::Role;
using Stream = ChildProcess::Stream;

// How long the scheduler may take to listen.
constexpr absl::Duration kStartMax = absl::Seconds(20);
// How often to look whether it does.
constexpr absl::Duration kStartPoll = absl::Milliseconds(20);
constexpr absl::Duration kStatusPoll = absl::Milliseconds(500);
constexpr absl::Duration kProgressLine = absl::Seconds(2);
constexpr char kOwnLabel[] = "covey";

absl::Time Now() {
  return absl::UnixEpoch() + absl::FromChrono(std::chrono::steady_clock::now().time_since_epoch());
}

struct Member {
  Role role;
  std::unique_ptr<ChildProcess> process;
  std::unique_ptr<ChildOutput> output;
};

class LocalCluster {
 public:
  LocalCluster(const RunOptions& options, LocalPaths paths, Terminal& terminal)
      : options_(options),
        paths_(std::move(paths)),
        terminal_(terminal),
        supervisor_(options.grace),
        start_(Now()) {}

  RunOutcome Run();

 private:
  absl::Status Prepare();
  absl::Status Start(Role role, uint32_t group, const Program& program);
  // Starts servers and workers once the scheduler listens.
  absl::Status StartOthers(absl::string_view port);
  void AwaitPort(absl::Time now);

  // Waits for what happens next, at most until `until`, and takes it in.
  void Wait(absl::Time until);
  absl::Time NextWake(absl::Time now) const;
  void ReadSignals(absl::Time now);
  void TakeLine(size_t number, Stream stream, absl::string_view line);
  void TakeResult(const std::string& worker, absl::string_view text);
  void ReapChildren(absl::Time now);
  void Report(size_t number, const ChildExit& exit);
  void SendSignals(absl::Time now);
  void FollowProgress(absl::Time now);
  bool ShowsEverything() const { return options_.show == RunOptions::Show::kEverything; }
  void Say(absl::string_view line) { terminal_.Print(Terminal::Stream::kError, kOwnLabel, line); }

  const RunOptions& options_;
  LocalPaths paths_;
  Terminal& terminal_;
  RunSupervisor supervisor_;
  const absl::Time start_;
  std::unique_ptr<TemporaryFolder> folder_;
  std::vector<Member> members_;  // numbered as in the supervisor; the scheduler first
  int signals_ = -1;
  bool others_started_ = false;
  // The member that failed first.
  std::optional<size_t> failed_;

  std::unique_ptr<StatusPoller> poller_;
  absl::Time next_status_ = absl::InfinitePast();
  absl::Time next_progress_line_ = absl::InfinitePast();
  RunOutcome outcome_;
};

RunOutcome LocalCluster::Run() {
  if (const absl::Status status = Prepare(); !status.ok()) {
    supervisor_.Fail(status.message(), Now());
  }
  while (!supervisor_.finished()) {
    const absl::Time now = Now();
    if (now >= start_ + options_.timeout && !supervisor_.stopping()) {
      supervisor_.Fail(absl::StrCat("the run took longer than --timeout ",
                                    absl::FormatDuration(options_.timeout)),
                       now);
    }
    if (!others_started_ && !supervisor_.stopping()) AwaitPort(now);
    if (poller_ != nullptr) FollowProgress(now);
    SendSignals(now);
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
  outcome_.wall = Now() - start_;
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
  return Start(Role::kScheduler, 0, SchedulerProgram(options_, paths_));
}

absl::Status LocalCluster::Start(Role role, uint32_t group, const Program& program) {
  std::unique_ptr<LogFile> log;
  if (!options_.log_folder.empty()) {
    const std::string path = absl::StrCat(options_.log_folder, "/", program.name, ".log");
    COVEY_ASSIGN_OR_RETURN(log, LogFile::Open(path));
  }
  COVEY_ASSIGN_OR_RETURN(std::unique_ptr<ChildProcess> process, ChildProcess::Start(program));
  const size_t number = supervisor_.Add(role, group, process->name(), process->pid());
  auto output = std::make_unique<ChildOutput>(
      *process, std::move(log),
      [this, number](Stream stream, absl::string_view line) { TakeLine(number, stream, line); });
  members_.push_back({.role = role, .process = std::move(process), .output = std::move(output)});
  return absl::OkStatus();
}

absl::Status LocalCluster::StartOthers(absl::string_view port) {
  const std::string address = absl::StrCat("127.0.0.1:", port);
  if (ShowsEverything()) {
    Say(absl::StrCat("scheduler at ", address, "; look at it with: covey status --scheduler ",
                     address));
  }
  for (uint32_t rank = 0; rank < options_.servers; ++rank) {
    COVEY_RETURN_IF_ERROR(Start(Role::kServer, 0, ServerProgram(options_, paths_, address, rank)));
  }
  for (uint32_t rank = 0; rank < options_.workers(); ++rank) {
    COVEY_RETURN_IF_ERROR(Start(Role::kWorker, rank / options_.workers_per_group,
                                WorkerProgram(options_, address, rank)));
  }
  // gRPC starts threads: only after the last fork.
  poller_ = std::make_unique<StatusPoller>(address);
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
  if (!others_started_) next = std::min(next, now + kStartPoll);
  if (poller_ != nullptr) next = std::min(next, next_status_);
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
  const absl::Duration left = std::clamp(until - Now(), absl::ZeroDuration(), absl::Hours(1));
  // Rounded up, or the last millisecond would be spent spinning.
  poll(polled.data(), polled.size(), static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);

  for (size_t i = first_stream; i < polled.size(); ++i) {
    if (polled[i].revents == 0) continue;
    const Member& member = members_[(i - first_stream) / 2];
    member.output->Read((i - first_stream) % 2 == 0 ? Stream::kOutput : Stream::kError);
  }
  if (polled[0].revents != 0) ReadSignals(Now());
}

void LocalCluster::ReadSignals(absl::Time now) {
  signalfd_siginfo info;
  while (read(signals_, &info, sizeof(info)) == sizeof(info)) {
    const int signal = static_cast<int>(info.ssi_signo);
    if (signal == SIGCHLD) continue;
    Say(supervisor_.stopping() ? "killing what is left"
                               : "stopping after the step under way; once more kills");
    supervisor_.Interrupt(signal, now);
  }
  // Several of a kind arrive as one, so it is never said who.
  ReapChildren(now);
}

void LocalCluster::TakeLine(size_t number, Stream stream, absl::string_view line) {
  const Member& member = members_[number];
  const bool is_program = member.role == Role::kWorker;
  // The scheduler says the same, of all groups at once.
  if (is_program && absl::StartsWith(line, "progress {")) return;
  if (ShowsEverything() || (is_program && stream == Stream::kError)) {
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
                     " printed after 'result' is no JSON object, so it is not used"));
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
    Report(number, *exit);
    supervisor_.Exited(number, *exit, now);
    if (!had_failed && !supervisor_.outcome().ok()) failed_ = number;
    next_status_ = now;
  }
}

void LocalCluster::Report(size_t number, const ChildExit& exit) {
  const Member& member = members_[number];
  if (supervisor_.WasStopped(number) || (exit.ok() && member.role == Role::kWorker)) return;
  Say(absl::StrCat(member.process->name(), " (pid ", member.process->pid(), ") ", Describe(exit)));
}

void LocalCluster::SendSignals(absl::Time now) {
  for (const RunSupervisor::SignalTo& sent : supervisor_.TakeSignals(now)) {
    ChildProcess& process = *members_[sent.child].process;
    if (sent.signal == SIGKILL) Say(absl::StrCat(process.name(), " does not stop: killing it"));
    process.Signal(sent.signal);
  }
}

void LocalCluster::FollowProgress(absl::Time now) {
  // The scheduler has been told to end, or has ended: nobody is left to ask.
  if (supervisor_.WasStopped(0) || !members_[0].process->running()) {
    poller_.reset();
    return;
  }
  const auto status = poller_->Take();
  if (status.has_value() && status->ok()) {
    const absl::Duration elapsed = now - start_;
    outcome_.history.Add(elapsed, **status);
    if (!ShowsEverything()) {
      // Whoever runs the cluster shows progress of its own.
    } else if (terminal_.interactive()) {
      terminal_.SetBlock(ProgressBlock(**status, elapsed, terminal_.block_lines_max()));
    } else if (now >= next_progress_line_) {
      next_progress_line_ = now + kProgressLine;
      Say(ProgressLine(**status, elapsed));
    }
  }
  if (now >= next_status_) {
    next_status_ = now + kStatusPoll;
    poller_->Ask();
  }
}

}  // namespace

RunOutcome RunLocalCluster(const RunOptions& options, const LocalPaths& binaries,
                           Terminal& terminal) {
  return LocalCluster(options, binaries, terminal).Run();
}

}  // namespace covey::cli

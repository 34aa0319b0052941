// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_fleet.h"

#include <signal.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/run/missing_ranks.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

// How long the scheduler may take until it listens.
constexpr absl::Duration kStartMax = absl::Seconds(20);
// Time within which a process that was declared dead should learn of it and end by itself.
constexpr absl::Duration kDeadMax = absl::Seconds(1);

// Process ids of the nodes for which the predicate holds.
template <typename Predicate>
std::set<uint64_t> ProcessIds(const proto::ClusterView& view, const Predicate& is_such) {
  std::set<uint64_t> ids;
  for (const proto::Node& node : view.nodes()) {
    if (is_such(node)) ids.insert(node.process_id());
  }
  return ids;
}

}  // namespace

RunFleet::RunFleet(const RunOptions& options, const LocalPaths& paths, absl::Time start,
                   RunDisplay& display, RunIncidents& incidents)
    : options_(options),
      start_(start),
      display_(display),
      incidents_(incidents),
      supervisor_(options.grace,
                  options.on_failure == RunOptions::OnFailure::kStop ? RunSupervisor::OnLoss::kStop
                                                                     : RunSupervisor::OnLoss::kGoOn,
                  options.store.empty() ? absl::ZeroDuration() : options.last_snapshot_max),
      processes_(
          options, paths,
          [this](const RunProcess& from, RunProcesses::Stream stream, absl::string_view line) {
            const bool is_over = supervisor_.idle() && supervisor_.outcome().ok();
            display_.TakeLine(from, stream, line, is_over);
          }),
      restarts_(options.on_failure),
      faults_(options.faults, processes_, restarts_, display, incidents) {}

absl::Status RunFleet::StartScheduler() {
  COVEY_RETURN_IF_ERROR(processes_.MakeFolders());
  return Start(Role::kScheduler, 0);
}

absl::Status RunFleet::Start(Role role, uint32_t rank) {
  COVEY_ASSIGN_OR_RETURN(const size_t number, processes_.Start(role, rank));
  const RunProcess& process = processes_[number];
  const size_t child =
      supervisor_.Add(role, processes_.GroupOf(process), process.name(), process.process->pid());
  COVEY_CHECK(child == number);
  if (role == Role::kScheduler) {
    scheduler_ = number;
    scheduler_answered_ = false;
  }
  return absl::OkStatus();
}

void RunFleet::StartOthersWhenPossible(absl::Time now) {
  if (others_started_ || supervisor_.stopping()) return;
  const absl::StatusOr<bool> listens = processes_.FindScheduler();
  if (!listens.ok() || *listens) {
    others_started_ = true;
    const absl::Status started = listens.ok() ? StartOthers() : listens.status();
    if (!started.ok()) supervisor_.Fail(started.message(), now);
  } else if (now >= start_ + kStartMax) {
    supervisor_.Fail(absl::StrCat("the scheduler (", processes_.scheduler_binary(),
                                  ") did not listen within ", absl::FormatDuration(kStartMax)),
                     now);
  }
}

absl::Status RunFleet::StartOthers() {
  if (display_.ShowsEverything()) {
    const std::string tls = options_.TlsOf(IdentityRole::kViewer);
    display_.Say(absl::StrCat("scheduler at ", processes_.address(),
                              "; look at it with: covey status --scheduler ", processes_.address(),
                              tls.empty() ? "" : " --tls ", tls));
  }
  for (uint32_t rank = 0; rank < options_.servers; ++rank) {
    COVEY_RETURN_IF_ERROR(Start(Role::kServer, rank));
  }
  for (uint32_t rank = 0; rank < options_.workers(); ++rank) {
    COVEY_RETURN_IF_ERROR(Start(Role::kWorker, rank));
  }
  supervisor_.AllStarted();
  return absl::OkStatus();
}

void RunFleet::StartDue(absl::Time now) {
  if (supervisor_.stopping()) {
    restarts_.Clear();
    return;
  }
  faults_.Inject(now, now - start_);
  const auto is_running = [this](const Restarts::Restart& restart) {
    return processes_.FindRunning(processes_.NameOf(restart.role, restart.rank)) != nullptr;
  };
  for (const Restarts::Restart& restart : restarts_.TakeDue(now, is_running)) {
    if (supervisor_.stopping()) return;
    // A worker that starts this late finds nothing to do.
    if (restart.role == Role::kWorker && ended_well_) continue;
    const std::string name = processes_.NameOf(restart.role, restart.rank);
    const absl::Status started = Start(restart.role, restart.rank);
    display_.Say(started.ok() ? absl::StrCat("restarted ", name) : std::string(started.message()));
    if (!started.ok()) supervisor_.GiveUp(name, now);
    incidents_.Note(Elapsed(now), name, started.ok() ? "restarted" : "cannot be restarted");
  }
}

bool RunFleet::Reap(absl::Time now) {
  bool some_ended = false;
  for (size_t number = 0; number < processes_.all().size(); ++number) {
    const RunProcess& process = processes_[number];
    if (!process.running()) continue;
    const std::optional<ChildExit> exit = process.process->Reap();
    if (!exit.has_value()) continue;
    process.output->Finish();
    const bool had_failed = !supervisor_.outcome().ok();
    const std::string& name = process.name();
    const bool was_stopped = supervisor_.WasStopped(number);
    if (!was_stopped && !exit->ok()) incidents_.Died(Elapsed(now), name, Describe(*exit));
    const bool comes_back = ComesBack(number, *exit, now);
    if (comes_back) supervisor_.Replace(number);
    if (!was_stopped && !(exit->ok() && process.role == Role::kWorker)) {
      const bool is_away = comes_back && process.role == Role::kScheduler;
      display_.Say(absl::StrCat(name, " (pid ", process.process->pid(), ") ", Describe(*exit),
                                is_away ? "; training continues while it restarts" : ""));
    }
    supervisor_.Exited(number, *exit, now);
    if (!had_failed && !supervisor_.outcome().ok()) failed_ = number;
    if (process.role == Role::kWorker && exit->ok()) {
      // Training will end soon.
      ended_well_ = true;
      supervisor_.GiveUpWorkers(now);
    }
    some_ended = true;
  }
  return some_ended;
}

bool RunFleet::ComesBack(size_t number, const ChildExit& exit, absl::Time now) {
  const RunProcess& process = processes_[number];
  const Restarts::Verdict verdict =
      restarts_.OnEnd({.name = process.name(),
                       .role = process.role,
                       .rank = process.rank,
                       .lived = now - process.started,
                       .is_ok = exit.ok()},
                      {.is_stopping = supervisor_.stopping() || supervisor_.WasStopped(number),
                       .training_ends = ended_well_,
                       .all_started = others_started_,
                       .scheduler_answered = scheduler_answered_},
                      now);
  if (verdict == Restarts::Verdict::kEndsTooOften) {
    display_.Say(absl::StrCat(process.name(), " has ended ", RestartLimit::kQuickEndsMax,
                              " times within ", absl::FormatDuration(RestartLimit::kQuick),
                              " of its start: it is not restarted"));
  }
  return verdict == Restarts::Verdict::kComesBack;
}

void RunFleet::SendSignals(absl::Time now) {
  for (const RunSupervisor::SignalTo& sent : supervisor_.TakeSignals(now)) {
    ChildProcess& process = *processes_[sent.child].process;
    if (sent.signal == SIGKILL) {
      display_.Say(absl::StrCat(process.name(), " does not stop: killing it"));
    }
    process.Signal(sent.signal);
    // A stopped process would never receive it.
    if (sent.signal == SIGTERM) process.Signal(SIGCONT);
  }
}

void RunFleet::TakeView(absl::Time now, const proto::ClusterView& view) {
  scheduler_answered_ = true;
  FollowDead(now, view);
  FollowWanted(now, view);
}

void RunFleet::FollowDead(absl::Time now, const proto::ClusterView& view) {
  const std::set<uint64_t> dead =
      ProcessIds(view, [](const proto::Node& node) { return node.state() == proto::Node::DEAD; });
  for (RunProcess& process : processes_.all()) {
    if (!process.running() || !dead.contains(process.process_id())) continue;
    if (process.declared_dead == absl::InfiniteFuture()) process.declared_dead = now;
    // Its place is needed, or the others have ended and it is the last one.
    const bool is_in_the_way = options_.on_failure == RunOptions::OnFailure::kRestart ||
                               (process.role == Role::kWorker && ended_well_);
    if (is_in_the_way && now >= process.declared_dead + kDeadMax) {
      Kill(process.name(), "declared dead, but it does not end", processes_, display_);
    }
  }
}

void RunFleet::FollowWanted(absl::Time now, const proto::ClusterView& view) {
  if (supervisor_.stopping() || now < next_missing_) return;
  if (view.wanted_servers() > 0) StartMissing(now, Role::kServer, view.wanted_servers(), view);
  // Once a worker has ended, training will end soon.
  if (view.wanted_workers() > 0 && !ended_well_) {
    StartMissing(now, Role::kWorker, view.wanted_workers(), view);
  }
}

void RunFleet::StartMissing(absl::Time now, Role role, uint32_t wanted,
                            const proto::ClusterView& view) {
  const std::set<uint64_t> draining = ProcessIds(view, [](const proto::Node& node) {
    return node.draining() && node.state() == proto::Node::ALIVE;
  });
  std::vector<RankInUse> running;
  for (const RunProcess& process : processes_.all()) {
    if (process.role != role || !process.running()) continue;
    running.push_back({process.rank, draining.contains(process.process_id())});
  }
  std::vector<uint32_t> restarting;
  for (const Restarts::Restart& restart : restarts_.pending()) {
    if (restart.role == role) restarting.push_back(restart.rank);
  }
  for (const uint32_t rank : MissingRanks(running, restarting, wanted)) {
    // Keeps a process that cannot run from being restarted without a pause.
    next_missing_ = now + 2 * Restarts::kDelay;
    const std::string name = processes_.NameOf(role, rank);
    const absl::Status started = Start(role, rank);
    display_.Say(started.ok() ? absl::StrCat("started ", name, ": ", wanted, " are wanted")
                              : std::string(started.message()));
    if (started.ok()) incidents_.Note(Elapsed(now), name, "started: more are wanted");
  }
}

absl::Time RunFleet::NextWake() const {
  if (supervisor_.stopping()) return supervisor_.NextWake();
  return std::min({supervisor_.NextWake(), restarts_.next(), faults_.NextAt()});
}

}  // namespace covey::cli

#include "client/cli/run_supervisor.h"

#include <signal.h>
#include <string.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace covey::cli {

size_t RunSupervisor::Add(Role role, uint32_t group, absl::string_view name, int64_t process_id) {
  children_.push_back(
      {.role = role, .group = group, .label = absl::StrCat(name, " (pid ", process_id, ")")});
  return children_.size() - 1;
}

void RunSupervisor::Exited(size_t number, const ChildExit& exit, absl::Time now) {
  Child& child = children_[number];
  child.running = false;
  child.ended_well = exit.ok();
  // A server that has drained ends well.
  const bool expected =
      child.terminated || child.replaced ||
      (exit.ok() &&
       (child.role == Role::kWorker ||
        (on_loss_ == OnLoss::kGoOn && child.role == Role::kServer && AnyRunning(Role::kServer))));
  if (!expected) {
    const std::string what = absl::StrCat(child.label, " ", Describe(exit));
    if (first_loss_.empty()) first_loss_ = what;
    if (!drain_ && CanGoOnWithout(child)) {
      child.lost = true;
    } else {
      if (outcome_.ok() && child.role == Role::kWorker) broken_group_ = child.group;
      Fail(first_loss_, now);
    }
  }
  Advance(now);
}

bool RunSupervisor::CanGoOnWithout(const Child& child) const {
  if (on_loss_ == OnLoss::kStop || child.role == Role::kScheduler) return false;
  return std::any_of(children_.begin(), children_.end(), [&child](const Child& other) {
    return other.role == child.role &&
           (other.running || (other.role == Role::kWorker && other.ended_well));
  });
}

void RunSupervisor::Interrupt(int signal, absl::Time now) {
  if (!all_started_ || AnyRunning(Role::kWorker)) {
    Fail(absl::StrCat("stopped by SIG", sigabbrev_np(signal), " before the programs had ended"),
         now);
  }
  broken_group_ = -1;
  ++interruptions_;
  Advance(now);
}

void RunSupervisor::Fail(absl::string_view reason, absl::Time now) {
  if (outcome_.ok()) outcome_ = absl::AbortedError(reason);
  drain_ = true;
  Advance(now);
}

std::vector<RunSupervisor::SignalTo> RunSupervisor::TakeSignals(absl::Time now) {
  std::vector<SignalTo> signals;
  for (size_t number = 0; number < children_.size(); ++number) {
    Child& child = children_[number];
    if (!child.running) continue;
    if (!child.terminated && child.terminate_at <= now) {
      child.terminated = true;
      child.kill_at = now + grace_;
      signals.push_back({number, SIGTERM});
    }
    if (!child.killed && child.kill_at <= now) {
      child.killed = true;
      signals.push_back({number, SIGKILL});
    }
  }
  return signals;
}

absl::Time RunSupervisor::NextWake() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Child& child : children_) {
    if (!child.running) continue;
    if (!child.terminated) next = std::min(next, child.terminate_at);
    if (!child.killed) next = std::min(next, child.kill_at);
  }
  return next;
}

bool RunSupervisor::finished() const {
  return stopping() && std::none_of(children_.begin(), children_.end(),
                                    [](const Child& child) { return child.running; });
}

bool RunSupervisor::stopping() const {
  return drain_ || (all_started_ && !AnyRunning(Role::kWorker));
}

bool RunSupervisor::AnyRunning(Role role) const {
  return std::any_of(children_.begin(), children_.end(),
                     [role](const Child& child) { return child.running && child.role == role; });
}

void RunSupervisor::Terminate(Role role, absl::Time at) {
  for (Child& child : children_) {
    if (child.role == role) child.terminate_at = std::min(child.terminate_at, at);
  }
}

void RunSupervisor::Advance(absl::Time now) {
  if (interruptions_ > 1) {
    for (Child& child : children_) {
      child.terminated = true;
      child.kill_at = now;
    }
    return;
  }
  if (drain_) {
    bool survivors = false;
    for (Child& child : children_) {
      if (child.running && child.role == Role::kWorker && child.group == broken_group_) {
        survivors = true;
        child.terminate_at = std::min(child.terminate_at, now + kSurvivorsMax);
      }
    }
    if (!survivors) Terminate(Role::kWorker, now);
  }
  if (!stopping() || AnyRunning(Role::kWorker)) return;
  Terminate(Role::kServer, now);
  if (!AnyRunning(Role::kServer)) Terminate(Role::kScheduler, now);
}

}  // namespace covey::cli

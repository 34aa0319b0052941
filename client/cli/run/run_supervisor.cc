// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_supervisor.h"

#include <signal.h>
#include <string.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace covey::cli {

size_t RunSupervisor::Add(Role role, uint32_t group, absl::string_view name, int64_t process_id) {
  for (Child& child : children_) {
    if (child.name == name) child.awaited = false;
  }
  children_.push_back({.role = role,
                       .group = group,
                       .name = std::string(name),
                       .label = absl::StrCat(name, " (pid ", process_id, ")")});
  return children_.size() - 1;
}

void RunSupervisor::Replace(size_t child) {
  children_[child].replaced = true;
  children_[child].awaited = true;
}

void RunSupervisor::GiveUp(absl::string_view name, absl::Time now) {
  for (Child& child : children_) {
    if (child.name != name || !child.awaited) continue;
    child.awaited = false;
    Lose(child, now);
  }
  Advance(now);
}

void RunSupervisor::GiveUpWorkers(absl::Time now) {
  for (Child& child : children_) {
    if (child.role != Role::kWorker || !child.awaited) continue;
    child.awaited = false;
    Lose(child, now);
  }
  Advance(now);
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
    if (first_loss_.empty()) first_loss_ = absl::StrCat(child.label, " ", Describe(exit));
    Lose(child, now);
  }
  Advance(now);
}

void RunSupervisor::Lose(Child& child, absl::Time now) {
  if (!drain_ && CanGoOnWithout(child)) {
    child.lost = true;
    return;
  }
  if (outcome_.ok() && child.role == Role::kWorker) broken_group_ = child.group;
  Fail(first_loss_.empty() ? absl::StrCat(child.label, " ended and could not be replaced")
                           : first_loss_,
       now);
}

bool RunSupervisor::CanGoOnWithout(const Child& child) const {
  if (on_loss_ == OnLoss::kStop) return false;
  // The work is done.
  if (child.role != Role::kWorker && idle()) return true;
  if (child.role == Role::kScheduler) return false;
  return std::any_of(children_.begin(), children_.end(), [&child](const Child& other) {
    return other.role == child.role &&
           (other.running || other.awaited || (other.role == Role::kWorker && other.ended_well));
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
      // Without a scheduler no group can release a member.
      const bool is_alone = child.role == Role::kWorker && !AnyRunning(Role::kScheduler);
      child.kill_at = now + (is_alone ? std::min(grace_, kAloneMax) : grace_);
      if (child.role == Role::kServer) child.kill_at += servers_longer_;
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
  return drain_ || (all_started_ && !AnyRunning(Role::kWorker) && !AnyAwaited(Role::kWorker));
}

bool RunSupervisor::AnyRunning(Role role) const {
  return std::any_of(children_.begin(), children_.end(),
                     [role](const Child& child) { return child.running && child.role == role; });
}

bool RunSupervisor::AnyAwaited(Role role) const {
  return std::any_of(children_.begin(), children_.end(),
                     [role](const Child& child) { return child.awaited && child.role == role; });
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

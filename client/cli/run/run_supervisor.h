// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/cli/process/child_process.h"

namespace covey::cli {

// Decides which process of a local cluster is stopped when, and the outcome of a run.
//
//                 all started              all workers gone            all servers gone
//   starting ────────────────▶ running ─────────────────▶ SIGTERM to ─────────────────▶ SIGTERM to
//                                 │                       servers                       scheduler
//                                 ├─ a process ends, and another one replaces it: Replace
//                                 ├─ a server or worker fails, others of its kind are left, and
//                                 │  the run is to continue: a loss
//                                 ├─ else a worker fails: its group may end by itself, within
//                                 │  kSurvivorsMax; then SIGTERM to all workers
//                                 └─ else server or scheduler ends, interruption, Fail: SIGTERM to
//                                    all workers
//
// Invariants:
//   1. A process that has not ended within its grace after SIGTERM gets SIGKILL. So a run that was
//      told to end does end.
//   2. Only the first failure counts: later ones are its consequences.
//   3. A process that was told to end, or that had drained, is not blamed for how it ends.
//
// Pure: it says which signals to send, and time is an argument.
class RunSupervisor {
 public:
  enum class Role { kScheduler, kServer, kWorker };
  // Time in which the survivors of a broken group should notice and report the death.
  static constexpr absl::Duration kSurvivorsMax = absl::Seconds(10);
  // The longest grace after SIGTERM of workers whose scheduler is gone, too.
  static constexpr absl::Duration kAloneMax = absl::Seconds(1);

  struct SignalTo {
    size_t child;
    int signal;
  };

  // The reaction to the loss of a server or worker.
  enum class OnLoss { kGoOn, kStop };

  // `grace` from SIGTERM to SIGKILL; servers have `servers_longer` in addition.
  explicit RunSupervisor(absl::Duration grace, OnLoss on_loss = OnLoss::kStop,
                         absl::Duration servers_longer = absl::ZeroDuration())
      : grace_(grace), on_loss_(on_loss), servers_longer_(servers_longer) {}

  // Adds a process that was started, perhaps in place of one of the same name. Returns its number:
  // 0, 1, ….
  size_t Add(Role role, uint32_t group, absl::string_view name, int64_t process_id);
  // All initial processes were started.
  void AllStarted() { all_started_ = true; }

  void Exited(size_t child, const ChildExit& exit, absl::Time now);
  // The first call drains, the second kills.
  void Interrupt(int signal, absl::Time now);
  // The run has failed for another reason; stop in order.
  void Fail(absl::string_view reason, absl::Time now);

  // The signals to send by now; each is returned once.
  std::vector<SignalTo> TakeSignals(absl::Time now);
  // When to call TakeSignals again if no event comes before.
  absl::Time NextWake() const;

  // All processes have ended, and no more will be started.
  bool finished() const;
  // Whether the run is ending: failed, interrupted, or its workers are done.
  bool stopping() const;
  // All workers have ended, so no work is left.
  bool idle() const { return stopping() && !AnyRunning(Role::kWorker); }
  // OK: all workers ended well by themselves. ABORTED: the first failure, one line.
  const absl::Status& outcome() const { return outcome_; }
  // Whether the run continued without the child, though it had not ended well.
  bool WasLost(size_t child) const { return children_[child].lost; }
  // The child's end, which is reported next, is no failure: its replacement is added later.
  void Replace(size_t child);
  // The process, or every awaited worker, is not replaced after all.
  void GiveUp(absl::string_view name, absl::Time now);
  void GiveUpWorkers(absl::Time now);
  // Whether the child was told to end.
  bool WasStopped(size_t child) const { return children_[child].terminated; }

 private:
  struct Child {
    Role role;
    uint32_t group;
    std::string name;
    std::string label;  // "worker-1 (pid 123)"
    bool running = true;
    bool ended_well = false;
    bool lost = false;
    bool replaced = false;
    bool awaited = false;  // its replacement is expected
    bool terminated = false;
    bool killed = false;
    absl::Time terminate_at = absl::InfiniteFuture();
    absl::Time kill_at = absl::InfiniteFuture();
  };

  bool AnyRunning(Role role) const;
  bool AnyAwaited(Role role) const;
  // Handles an unexpected end without a replacement.
  void Lose(Child& child, absl::Time now);
  // Whether the others can do without the child.
  bool CanGoOnWithout(const Child& child) const;
  void Terminate(Role role, absl::Time at);
  // Applies the diagram above.
  void Advance(absl::Time now);

  absl::Duration grace_;
  OnLoss on_loss_;
  absl::Duration servers_longer_;
  std::string first_loss_;
  std::vector<Child> children_;
  bool all_started_ = false;
  int interruptions_ = 0;
  absl::Status outcome_;
  // All workers must end; the group with this number may first do so by itself.
  bool drain_ = false;
  int64_t broken_group_ = -1;
};

}  // namespace covey::cli

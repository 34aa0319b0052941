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

// Decides who of a local cluster is stopped when, and what a run ends with.
//
//                 all started              all workers gone            all servers gone
//   starting ────────────────▶ running ─────────────────▶ SIGTERM to ─────────────────▶ SIGTERM to
//                                 │                       servers                       scheduler
//                                 ├─ somebody ends, and another one takes its place: Replace
//                                 ├─ a server or worker fails, others of its kind are left, and
//                                 │  the run is to go on: a loss
//                                 ├─ else a worker fails: its group may end by itself, for as long
//                                 │  as kSurvivorsMax; then SIGTERM to all workers
//                                 └─ else server or scheduler ends, interruption, Fail: SIGTERM to
//                                    all workers
//
// Invariants:
//   1. Whoever has not ended within `grace` after SIGTERM gets SIGKILL. So a run that was told to
//      end does end.
//   2. Only the first failure counts: what comes after is its consequence.
//   3. Nobody is blamed for how it ends after it was told to, or after it had drained.
//
// Pure: it says which signals to send, and time is an argument.
class RunSupervisor {
 public:
  enum class Role { kScheduler, kServer, kWorker };
  // Survivors of a broken group have so long to notice and to say who died.
  static constexpr absl::Duration kSurvivorsMax = absl::Seconds(10);
  // Workers whose scheduler is gone, too, have at most so long after SIGTERM.
  static constexpr absl::Duration kAloneMax = absl::Seconds(1);

  struct SignalTo {
    size_t child;
    int signal;
  };

  // What becomes of a run that loses a server or worker.
  enum class OnLoss { kGoOn, kStop };

  explicit RunSupervisor(absl::Duration grace, OnLoss on_loss = OnLoss::kStop)
      : grace_(grace), on_loss_(on_loss) {}

  // Who was started, perhaps in place of one of the same name. Returns its number: 0, 1, ….
  size_t Add(Role role, uint32_t group, absl::string_view name, int64_t process_id);
  // Everybody was.
  void AllStarted() { all_started_ = true; }

  void Exited(size_t child, const ChildExit& exit, absl::Time now);
  // The first call drains, the second kills.
  void Interrupt(int signal, absl::Time now);
  // The run has failed for another reason; stop in order.
  void Fail(absl::string_view reason, absl::Time now);

  // What to send by now; each signal is handed out once.
  std::vector<SignalTo> TakeSignals(absl::Time now);
  // When to ask again though nothing has happened.
  absl::Time NextWake() const;

  // Everybody is gone, and nobody will be started any more.
  bool finished() const;
  // Whether the run is ending: failed, interrupted, or its workers are done.
  bool stopping() const;
  // All workers are gone, and so nobody has anything to do any more.
  bool idle() const { return stopping() && !AnyRunning(Role::kWorker); }
  // OK: all workers have ended well by themselves. ABORTED: the first failure, one line.
  const absl::Status& outcome() const { return outcome_; }
  // Whether the run went on without it, though it had not ended well.
  bool WasLost(size_t child) const { return children_[child].lost; }
  // Its end, of which this is told next, is no failure: another one of its name is added later.
  void Replace(size_t child);
  // Nobody comes in its place after all, or in that of any worker.
  void GiveUp(absl::string_view name, absl::Time now);
  void GiveUpWorkers(absl::Time now);
  // Whether it was told to end.
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
    bool awaited = false;  // the one that takes its place
    bool terminated = false;
    bool killed = false;
    absl::Time terminate_at = absl::InfiniteFuture();
    absl::Time kill_at = absl::InfiniteFuture();
  };

  bool AnyRunning(Role role) const;
  bool AnyAwaited(Role role) const;
  // An end that was not expected, and that nobody takes the place of.
  void Lose(Child& child, absl::Time now);
  // Whether the others can do without the child.
  bool CanGoOnWithout(const Child& child) const;
  void Terminate(Role role, absl::Time at);
  // Applies the diagram above.
  void Advance(absl::Time now);

  absl::Duration grace_;
  OnLoss on_loss_;
  std::string first_loss_;
  std::vector<Child> children_;
  bool all_started_ = false;
  int interruptions_ = 0;
  absl::Status outcome_;
  // All workers must end, though the group with this number may do so by itself first.
  bool drain_ = false;
  int64_t broken_group_ = -1;
};

}  // namespace covey::cli

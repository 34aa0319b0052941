// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace covey {

// Decides which thread runs a loop: the loop's own, or a thread that waits for a result of the loop
// (the leader/followers pattern). A waiting thread that runs the loop itself saves two hand-overs
// between threads for each operation: the one to the loop's thread and the one back. One thread at
// a time has the turn:
//
//             the loop rests, and a caller asked
//     kOwn ───────────────────────────────────▶ kNone ──────────▶ kCaller
//       ▲                                        │  ▲   a caller     │
//       └────────────────────────────────────────┘  └────────────────┘
//         no caller for own_returns_after,             its result is there
//         or Recall
//
// In kNone no thread runs the loop: what has been handed over to it waits, for at most
// own_returns_after or until Recall. A caller that computes for longer than this between its
// operations finds the loop's own thread at work, as if there were no callers.
//
// Thread-safe. Whatever the loop confines to its thread is confined to the thread that has the
// turn; the mutex of this class orders the turns.
class LoopRunner {
 public:
  // The default of own_returns_after.
  static constexpr absl::Duration kOwnReturnsAfter = absl::Milliseconds(1);

  using Leave = absl::FunctionRef<bool()>;
  enum class Runner { kOwn, kCaller };
  struct Loop {
    // Runs one pass, then sleeps until there is something to do, or `until`. Does not go to sleep
    // once `leave` is true.
    std::function<void(Runner runner, Leave leave, absl::Time until)> pass;
    // Ends the sleep of a pass. Called from any thread.
    std::function<void()> wake_up;
  };

  explicit LoopRunner(Loop loop, absl::Duration own_returns_after = kOwnReturnsAfter)
      : loop_(std::move(loop)), own_returns_after_(own_returns_after) {}
  LoopRunner(const LoopRunner&) = delete;
  LoopRunner& operator=(const LoopRunner&) = delete;

  // The loop's own thread: runs the loop whenever it has the turn; returns after Stop.
  void RunOwn();
  // A thread that waits until `done`: runs the loop itself, or sleeps while another thread does.
  // Returns when `done` is true, at `until`, or after Stop. `done` is called often, on this thread
  // only, and must not use the loop. Not from within a pass, which would wait for itself.
  void RunUntil(absl::FunctionRef<bool()> done, absl::Time until);
  // The result of a caller is there: wakes it if it sleeps while another thread runs the loop. To
  // be called after what makes its `done` true, from any thread.
  void ResultArrived();
  // Ends kNone at once: there is something to do that no caller is about to wait for.
  void Recall();
  // Lets the current pass end. Afterwards no caller has the turn, and none will. Idempotent.
  void Stop();
  bool stopping() const { return stopping_.load(); }

 private:
  enum class Turn { kOwn, kCaller, kNone };

  // Sleeps until the loop's own thread is to run the loop again.
  void AwaitReturn() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Sleeps until this caller may have the turn: true. False when it needs none any more.
  bool TakeTurn(absl::FunctionRef<bool()> done, absl::Time until)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Loop loop_;
  const absl::Duration own_returns_after_;
  std::atomic<bool> stopping_{false};
  // A caller wants the turn of the loop's own thread.
  std::atomic<bool> wanted_{false};
  // Callers that sleep in RunUntil.
  std::atomic<int> sleeping_callers_{0};

  Mutex mutex_;
  CondVar callers_;  // something has changed for a sleeping caller
  CondVar own_;      // the same for the loop's own thread
  Turn turn_ ABSL_GUARDED_BY(mutex_) = Turn::kOwn;
  bool recalled_ ABSL_GUARDED_BY(mutex_) = false;  // kNone ends now
  // The loop's own thread sleeps until the caller leaves.
  bool own_awaits_leave_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t turns_of_callers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace covey

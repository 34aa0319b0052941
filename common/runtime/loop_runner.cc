// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/loop_runner.h"

#include "common/base/clock.h"

namespace covey {

void LoopRunner::RunOwn() {
  const auto leave = [this] { return wanted_.load() || stopping_.load(); };
  MutexLock lock(mutex_);
  while (!stopping_.load()) {
    turn_ = Turn::kOwn;
    mutex_.Unlock();
    do {
      loop_.pass(Runner::kOwn, leave, absl::InfiniteFuture());
    } while (!leave());
    mutex_.Lock();
    turn_ = Turn::kNone;
    recalled_ = false;
    callers_.NotifyAll();
    AwaitReturn();
  }
}

void LoopRunner::AwaitReturn() {
  for (uint64_t turns_before = turns_of_callers_; !stopping_.load();) {
    if (turn_ == Turn::kNone && recalled_) return;
    if (turn_ == Turn::kCaller) {
      // It would disturb the caller if it looked again and again.
      own_awaits_leave_ = true;
      own_.WaitFor(mutex_, absl::InfiniteDuration());
      own_awaits_leave_ = false;
      turns_before = turns_of_callers_;
      continue;
    }
    own_.WaitFor(mutex_, own_returns_after_);
    if (turn_ == Turn::kNone && turns_of_callers_ == turns_before) return;
    turns_before = turns_of_callers_;
  }
}

void LoopRunner::Recall() {
  MutexLock lock(mutex_);
  if (turn_ == Turn::kOwn || recalled_) return;
  recalled_ = true;
  if (turn_ == Turn::kNone) own_.NotifyOne();
}

bool LoopRunner::TakeTurn(absl::FunctionRef<bool()> done, absl::Time until) {
  bool asked = false;
  sleeping_callers_.fetch_add(1);
  while (!stopping_.load() && turn_ != Turn::kNone && !done()) {
    const absl::Duration left = until - MonotonicNow();
    if (left <= absl::ZeroDuration()) break;
    asked = true;
    if (turn_ == Turn::kOwn && !wanted_.exchange(true)) loop_.wake_up();
    callers_.WaitFor(mutex_, left);
  }
  const bool is_last = sleeping_callers_.fetch_sub(1) == 1;
  if (is_last) wanted_.store(false);
  if (stopping_.load() || turn_ != Turn::kNone) return false;
  if (!done()) return true;
  // The loop's own thread made room for nothing.
  if (is_last && asked) {
    recalled_ = true;
    own_.NotifyOne();
  }
  return false;
}

void LoopRunner::RunUntil(absl::FunctionRef<bool()> done, absl::Time until) {
  if (done()) return;
  MutexLock lock(mutex_);
  if (!TakeTurn(done, until)) return;
  turn_ = Turn::kCaller;
  ++turns_of_callers_;
  mutex_.Unlock();
  const auto leave = [&] { return done() || stopping_.load(); };
  while (!leave() && MonotonicNow() < until) {
    loop_.pass(Runner::kCaller, leave, until);
  }
  mutex_.Lock();
  turn_ = Turn::kNone;
  callers_.NotifyAll();
  if (recalled_ || own_awaits_leave_) own_.NotifyOne();
}

void LoopRunner::ResultArrived() {
  // A caller counts itself before it looks for its result the last time.
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (sleeping_callers_.load() == 0) return;
  MutexLock lock(mutex_);
  callers_.NotifyAll();
}

void LoopRunner::Stop() {
  stopping_.store(true);
  loop_.wake_up();
  MutexLock lock(mutex_);
  own_.NotifyAll();
  callers_.NotifyAll();
  while (turn_ == Turn::kCaller) callers_.WaitFor(mutex_, absl::InfiniteDuration());
}

}  // namespace covey

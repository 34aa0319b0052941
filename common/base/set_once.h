// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/check.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"

namespace covey {

// A value that one thread sets once, and for which other threads wait: a user's thread waits for a
// loop this way. Copies share the value, so a waiter may give up and drop its copy before the value
// is set.
//
// Thread-safe. The value never changes once it is set.
template <typename T>
class SetOnce {
 public:
  // Precondition: not set before.
  void Set(T value) const {
    std::vector<std::function<void()>> waiting;
    {
      MutexLock lock(state_->mutex);
      COVEY_CHECK(!state_->value.has_value());
      state_->value.emplace(std::move(value));
      state_->changed.NotifyAll();
      waiting.swap(state_->waiting);
    }
    for (const std::function<void()>& call : waiting) call();
  }
  // Calls `call` once the value is set: now, if it is, otherwise on the thread that sets it, which
  // `call` must not block.
  void OnSet(std::function<void()> call) const {
    {
      MutexLock lock(state_->mutex);
      if (!state_->value.has_value()) {
        state_->waiting.push_back(std::move(call));
        return;
      }
    }
    call();
  }
  bool is_set() const { return Get() != nullptr; }
  // Null while the value is not set; afterwards valid as long as any copy of this lives.
  const T* Get() const {
    MutexLock lock(state_->mutex);
    return state_->Get();
  }
  // Blocks until the value is set or `timeout` has passed. Null in the second case.
  const T* WaitFor(absl::Duration timeout) const {
    const absl::Time until = MonotonicNow() + timeout;
    MutexLock lock(state_->mutex);
    while (!state_->value.has_value()) {
      const absl::Duration left = until - MonotonicNow();
      if (left <= absl::ZeroDuration()) return nullptr;
      state_->changed.WaitFor(state_->mutex, left);
    }
    return state_->Get();
  }
  // Blocks without limit.
  const T& Wait() const { return *WaitFor(absl::InfiniteDuration()); }

 private:
  struct State {
    const T* Get() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      return value.has_value() ? &*value : nullptr;
    }

    Mutex mutex;
    CondVar changed;
    std::optional<T> value ABSL_GUARDED_BY(mutex);
    std::vector<std::function<void()>> waiting ABSL_GUARDED_BY(mutex);
  };

  std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace covey

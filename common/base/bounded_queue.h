#pragma once

#include <deque>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace covey {

// Hands values from any thread to one loop. Holds at most `capacity`; a full queue refuses, it
// never grows and never blocks. Thread-safe.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False when full: the value is untouched and the caller sheds load or backs off.
  // `was_empty` tells whether the consumer may be asleep and needs a wake-up.
  bool Push(T&& value, bool& was_empty) {
    MutexLock lock(mutex_);
    if (items_.size() >= capacity_) return false;
    was_empty = items_.empty();
    items_.push_back(std::move(value));
    return true;
  }

  // Takes everything, in order of arrival.
  std::deque<T> TakeAll() {
    MutexLock lock(mutex_);
    return std::exchange(items_, {});
  }

 private:
  const size_t capacity_;
  Mutex mutex_;
  std::deque<T> items_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace covey {

// Hands values from any thread to one loop. Holds at most `capacity` values; a full queue refuses
// further ones, and never grows or blocks. Thread-safe.
template <typename T>
class BoundedQueue {
 public:
  explicit BoundedQueue(size_t capacity) : capacity_(capacity) {}

  // False when full: the value is untouched and the caller drops it or backs off.
  bool Push(T&& value) {
    MutexLock lock(mutex_);
    if (items_.size() >= capacity_) return false;
    items_.push_back(std::move(value));
    return true;
  }

  // Takes all values, in order of arrival.
  std::vector<T> TakeAll() {
    MutexLock lock(mutex_);
    return std::exchange(items_, {});
  }

  bool empty() {
    MutexLock lock(mutex_);
    return items_.empty();
  }

 private:
  const size_t capacity_;
  Mutex mutex_;
  std::vector<T> items_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey

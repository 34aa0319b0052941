// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/base/thread_annotations.h"
#include "common/base/mutex.h"

namespace covey {

// The newest value that a loop has shown to other threads, at first a default one. Thread-safe.
template <typename T>
class LatestValue {
 public:
  void Set(const T& value) {
    MutexLock lock(mutex_);
    value_ = value;
  }
  T Get() const {
    MutexLock lock(mutex_);
    return value_;
  }

 private:
  mutable Mutex mutex_;
  T value_ ABSL_GUARDED_BY(mutex_) = {};
};

}  // namespace covey

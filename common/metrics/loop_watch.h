// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/mutex.h"

namespace covey {

// Whether the loops of a process are alive: each is asked for a tick now and then, which it gives
// between two pieces of its work. A loop that owes a tick for `stuck_after` is stuck.
//
// It has no timer: Ask is called by those who want to know, so a loop is found stuck by the first
// of these that comes `stuck_after` later than another one. Thread-safe.
class LoopWatch {
 public:
  // Lets the loop call `tick`, later and on its thread; false: the loop is stopping, or too much
  // waits there.
  using Post = std::function<bool(std::function<void()> tick)>;

  explicit LoopWatch(absl::Duration stuck_after = absl::Seconds(10)) : stuck_after_(stuck_after) {}

  // The loop has started. `post` may be called until this object ends, also after its loop.
  void Add(std::string name, Post post);
  // Asks each loop for a tick that owes none. A loop that takes no work owes it all the same, and
  // is asked again the next time.
  void Ask(absl::Time now);
  // Names of the loops that are stuck.
  std::vector<std::string> Stuck(absl::Time now) const;
  size_t size() const;

 private:
  // Shared with the tick, which may come when this object is gone.
  struct Debt {
    Mutex mutex;
    absl::Time since ABSL_GUARDED_BY(mutex) = absl::InfiniteFuture();  // infinite = none
    bool is_posted ABSL_GUARDED_BY(mutex) = false;                     // the loop knows of it
  };
  struct Watched {
    std::string name;
    Post post;
    std::shared_ptr<Debt> debt;
  };

  const absl::Duration stuck_after_;
  mutable Mutex mutex_;
  std::vector<Watched> loops_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey

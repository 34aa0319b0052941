// SPDX-License-Identifier: Apache-2.0
#include "common/metrics/loop_watch.h"

#include <algorithm>

namespace covey {

void LoopWatch::Add(std::string name, Post post) {
  MutexLock lock(mutex_);
  loops_.push_back({std::move(name), std::move(post), std::make_shared<Debt>()});
}

void LoopWatch::Ask(absl::Time now) {
  MutexLock lock(mutex_);
  for (const Watched& loop : loops_) {
    {
      MutexLock debt(loop.debt->mutex);
      if (loop.debt->is_posted) continue;
      loop.debt->since = std::min(loop.debt->since, now);
      loop.debt->is_posted = true;
    }
    const bool posted = loop.post([debt = loop.debt] {
      MutexLock held(debt->mutex);
      debt->since = absl::InfiniteFuture();
      debt->is_posted = false;
    });
    if (posted) continue;
    MutexLock debt(loop.debt->mutex);
    loop.debt->is_posted = false;
  }
}

std::vector<std::string> LoopWatch::Stuck(absl::Time now) const {
  std::vector<std::string> stuck;
  MutexLock lock(mutex_);
  for (const Watched& loop : loops_) {
    MutexLock debt(loop.debt->mutex);
    if (now - loop.debt->since >= stuck_after_) stuck.push_back(loop.name);
  }
  return stuck;
}

size_t LoopWatch::size() const {
  MutexLock lock(mutex_);
  return loops_.size();
}

}  // namespace covey

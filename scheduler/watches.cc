// SPDX-License-Identifier: Apache-2.0
#include "scheduler/watches.h"

#include <utility>

namespace covey::scheduler {

bool Watches::Add(const Message& request, absl::Time until) {
  const Watcher watcher = WatcherOf(request);
  if (const auto same = numbers_.find(watcher); same != numbers_.end()) {
    watches_.erase(same->second);
    numbers_.erase(same);
  }
  if (watches_.size() >= max_) return false;
  watches_.emplace(++last_number_, Watch{.request = request, .until = until});
  numbers_.emplace(watcher, last_number_);
  return true;
}

std::vector<Message> Watches::TakeOlderThan(Epoch epoch) {
  std::vector<Message> taken;
  for (auto at = watches_.begin(); at != watches_.end();) {
    Message& request = at->second.request;
    if (Epoch(request.envelope.watch_view_request().known_epoch()) >= epoch) {
      ++at;
      continue;
    }
    numbers_.erase(WatcherOf(request));
    taken.push_back(std::move(request));
    at = watches_.erase(at);
  }
  return taken;
}

std::vector<Message> Watches::TakeExpired(absl::Time now) {
  std::vector<Message> taken;
  while (next_deadline() <= now) {
    Message& request = watches_.begin()->second.request;
    numbers_.erase(WatcherOf(request));
    taken.push_back(std::move(request));
    watches_.erase(watches_.begin());
  }
  return taken;
}

absl::Time Watches::next_deadline() const {
  return watches_.empty() ? absl::InfiniteFuture() : watches_.begin()->second.until;
}

}  // namespace covey::scheduler

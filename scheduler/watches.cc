// SPDX-License-Identifier: Apache-2.0
#include "scheduler/watches.h"

#include <algorithm>
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

bool Watches::MayReply(absl::Time now) {
  if (now < NextNews()) {
    has_news_ = true;
    return false;
  }
  replied_until_ = std::max(replied_until_, now) + kReplyTime;
  return true;
}

std::vector<Message> Watches::TakeOlderThan(Epoch epoch, absl::Time now) {
  has_news_ = now < NextNews();
  if (has_news_) return {};
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
  replied_until_ = std::max(replied_until_, now) + static_cast<int64_t>(taken.size()) * kReplyTime;
  return taken;
}

std::vector<Message> Watches::TakeExpired(absl::Time now) {
  std::vector<Message> taken;
  while (!watches_.empty() && watches_.begin()->second.until <= now) {
    Message& request = watches_.begin()->second.request;
    numbers_.erase(WatcherOf(request));
    taken.push_back(std::move(request));
    watches_.erase(watches_.begin());
  }
  return taken;
}

absl::Time Watches::NextWake() const {
  if (watches_.empty()) return absl::InfiniteFuture();
  const absl::Time until = watches_.begin()->second.until;
  return has_news_ ? std::min(until, NextNews()) : until;
}

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <optional>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/mutex.h"
#include "common/net/message.h"

namespace covey {

// Replies, handed from gRPC's threads to a test. Thread-safe.
class ReplyInbox {
 public:
  void Put(Message message) {
    MutexLock lock(mutex_);
    messages_.push_back(std::move(message));
    arrived_.NotifyAll();
  }
  // Waits for the next reply; nothing after 20 s without one.
  std::optional<Message> Take() {
    const absl::Time deadline = MonotonicNow() + kPatience;
    MutexLock lock(mutex_);
    while (messages_.empty() && MonotonicNow() < deadline)
      arrived_.WaitFor(mutex_, deadline - MonotonicNow());
    if (messages_.empty()) return std::nullopt;
    Message message = std::move(messages_.front());
    messages_.pop_front();
    return message;
  }
  bool empty() {
    MutexLock lock(mutex_);
    return messages_.empty();
  }

 private:
  static constexpr absl::Duration kPatience = absl::Seconds(20);

  Mutex mutex_;
  CondVar arrived_;
  std::deque<Message> messages_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace covey

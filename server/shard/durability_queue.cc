// SPDX-License-Identifier: Apache-2.0
#include "server/shard/durability_queue.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/check.h"

namespace covey::server {

void DurabilityQueue::Add(UndurableReply reply) {
  COVEY_CHECK(replies_.empty() || replies_.back().index <= reply.index);
  next_deadline_ = std::min(next_deadline_, reply.deadline);
  replies_.push_back(std::move(reply));
}

void DurabilityQueue::TakeDurable(uint64_t durable, absl::FunctionRef<void(UndurableReply&)> take) {
  if (replies_.empty() || replies_.front().index > durable) return;
  while (!replies_.empty() && replies_.front().index <= durable) {
    UndurableReply reply = std::move(replies_.front());
    replies_.pop_front();
    take(reply);
  }
  FindDeadline();
}

void DurabilityQueue::TakeLate(absl::Time now, absl::FunctionRef<void(UndurableReply&)> take) {
  if (now < next_deadline_) return;
  std::vector<UndurableReply> late;
  std::deque<UndurableReply> kept;
  for (UndurableReply& reply : replies_) {
    if (reply.deadline <= now) {
      late.push_back(std::move(reply));
    } else {
      kept.push_back(std::move(reply));
    }
  }
  replies_ = std::move(kept);
  FindDeadline();
  for (UndurableReply& reply : late) take(reply);
}

void DurabilityQueue::FindDeadline() {
  next_deadline_ = absl::InfiniteFuture();
  for (const UndurableReply& reply : replies_) {
    next_deadline_ = std::min(next_deadline_, reply.deadline);
  }
}

size_t DurabilityQueue::bytes() const {
  size_t bytes = 0;
  const uint8_t* last = nullptr;
  for (const UndurableReply& reply : replies_) {
    if (reply.reply.frames.empty() || reply.reply.frames[0].data() == last) continue;
    last = reply.reply.frames[0].data();
    bytes += reply.reply.frames[0].size();
  }
  return bytes;
}

}  // namespace covey::server

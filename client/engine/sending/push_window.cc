// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/push_window.h"

#include "common/base/check.h"
#include "common/base/small_limits.h"
#include "common/cluster/limits.h"

namespace covey::client {

// A buffer of one client's pushes is full, and so becomes durable, before the window is.
static_assert(kBufferedArrivalsMax <= kDedupWindow);

void PushWindow::Begin(const ShardRequest& push) {
  unfinished_[{push.shard, push.producer}].insert(push.sequence);
}

void PushWindow::End(const ShardRequest& push) {
  const auto stream = unfinished_.find({push.shard, push.producer});
  COVEY_CHECK(stream != unfinished_.end());
  const auto ended = stream->second.find(push.sequence);
  COVEY_CHECK(ended != stream->second.end());
  stream->second.erase(ended);
  if (stream->second.empty()) unfinished_.erase(stream);
}

bool PushWindow::HasRoomFor(const ShardRequest& push) const {
  const uint64_t oldest = *unfinished_.at({push.shard, push.producer}).begin();
  return push.sequence < oldest + LimitInForce(kDedupWindow, kSmallDedupWindow);
}

}  // namespace covey::client

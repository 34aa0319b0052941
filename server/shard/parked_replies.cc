// SPDX-License-Identifier: Apache-2.0
#include "server/shard/parked_replies.h"

#include <algorithm>
#include <utility>

#include "common/base/small_limits.h"
#include "common/cluster/limits.h"
#include "server/shard/replies.h"

namespace covey::server {
namespace {

constexpr size_t kSmallParked = 3;

}  // namespace

PendingReply BeginPendingReply(absl::Time now, const Message& request,
                               const proto::ReadBound& bound, uint32_t deadline_ms) {
  return {.node = request.from().node,
          .incarnation = request.incarnation(),
          .request_id = request.envelope.header().request_id(),
          .view = Epoch(request.envelope.header().epoch()),
          .reply = BeginReply(request),
          .bound = bound,
          .deadline = now + std::min<absl::Duration>(absl::Milliseconds(deadline_ms), kBarrierMax)};
}

size_t BytesOf(const PendingReply& reply) {
  const size_t keys = reply.keys == nullptr ? 0 : reply.keys->keys.size();
  return keys + reply.queries.size() * sizeof(VectorQuery);
}

bool ParkedReplies::Park(PendingReply& reply) {
  const auto same = std::find_if(replies_.begin(), replies_.end(), [&](const PendingReply& other) {
    return other.request_id == reply.request_id && other.node == reply.node &&
           other.incarnation == reply.incarnation;
  });
  const size_t most = LimitInForce(kParkedPerShardMax, kSmallParked);
  if (same == replies_.end() && replies_.size() >= most) return false;
  next_deadline_ = std::min(next_deadline_, reply.deadline);
  if (same != replies_.end()) {
    *same = std::move(reply);
  } else {
    replies_.push_back(std::move(reply));
  }
  return true;
}

void ParkedReplies::Take(absl::FunctionRef<bool(const PendingReply&)> wanted,
                         absl::FunctionRef<void(PendingReply&)> take) {
  if (replies_.empty()) return;
  const auto first_taken = std::stable_partition(
      replies_.begin(), replies_.end(), [&](const PendingReply& reply) { return !wanted(reply); });
  for (auto reply = first_taken; reply != replies_.end(); ++reply) take(*reply);
  replies_.erase(first_taken, replies_.end());
  next_deadline_ = absl::InfiniteFuture();
  for (const PendingReply& reply : replies_) {
    next_deadline_ = std::min(next_deadline_, reply.deadline);
  }
}

size_t ParkedReplies::bytes() const {
  size_t bytes = 0;
  for (const PendingReply& reply : replies_) bytes += BytesOf(reply);
  return bytes;
}

}  // namespace covey::server

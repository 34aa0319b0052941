#include "client/undurable_pushes.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/cluster/limits.h"

namespace covey::client {
namespace {

// The answer that says "durable" comes by itself, mostly within milliseconds; a buffered table may
// take as long as its groups need for their pushes.
constexpr absl::Duration kAskAgain = absl::Seconds(2);
constexpr absl::Duration kAskAgainLongest = absl::Seconds(16);

}  // namespace

bool UndurablePushes::HasRoomFor(size_t bytes) const {
  return bytes_ + bytes <= kUndurableBytesPerClientMax;
}

absl::Duration UndurablePushes::Patience(const Push& push) {
  const absl::Duration patience =
      std::min(kAskAgainLongest, kAskAgain * (1 << std::min(push.tries, 10)));
  return patience * (1 + 0.1 * random_.Uniform());
}

void UndurablePushes::Keep(absl::Time now, Push push) {
  if (push.operation == 0) bytes_ += push.gradient.size();
  const auto [at, is_new] = pushes_.emplace(push.request_id, std::move(push));
  COVEY_CHECK(is_new);
  Postpone(now, at->second);
  SetReceived(at->second.received, at->second);
}

UndurablePushes::Push* UndurablePushes::Find(uint64_t request_id) {
  const auto found = pushes_.find(request_id);
  return found == pushes_.end() ? nullptr : &found->second;
}

UndurablePushes::Push UndurablePushes::Drop(uint64_t request_id) {
  const auto found = pushes_.find(request_id);
  COVEY_CHECK(found != pushes_.end());
  Push push = std::move(found->second);
  SetReceived(true, push);
  pushes_.erase(found);
  due_.erase(request_id);
  if (push.operation == 0) bytes_ -= push.gradient.size();
  return push;
}

void UndurablePushes::Postpone(absl::Time now, Push& push) {
  due_.erase(push.request_id);
  push.again = now + Patience(push);
  next_due_ = std::min(next_due_, push.again);
}

void UndurablePushes::Hasten(absl::Time when, Push& push) {
  push.again = std::min(push.again, when);
  next_due_ = std::min(next_due_, push.again);
}

void UndurablePushes::SetReceived(bool received, Push& push) {
  push.received = received;
  if (!received) {
    not_received_[StreamOf(push)].insert(push.request_id);
    return;
  }
  const auto found = not_received_.find(StreamOf(push));
  if (found == not_received_.end()) return;
  found->second.erase(push.request_id);
  if (found->second.empty()) not_received_.erase(found);
}

bool UndurablePushes::HoldsBack(uint64_t request_id, ShardId shard, GroupId group) const {
  if (not_received_.empty()) return false;
  const auto found = not_received_.find({shard, group});
  return found != not_received_.end() && *found->second.begin() < request_id;
}

bool UndurablePushes::HoldsBack(const Push& push) const {
  const auto& [shard, group] = StreamOf(push);
  return HoldsBack(push.request_id, shard, group);
}

std::vector<uint64_t> UndurablePushes::FollowView(absl::Time now, const ClusterView& view) {
  std::vector<uint64_t> lost;
  for (auto& [id, push] : pushes_) {
    const proto::Shard* shard = view.FindShard(push.shard);
    if (shard == nullptr || shard->generation() != push.request.shard_generation()) {
      lost.push_back(id);
    } else if (view.PrimaryOf(*shard) != push.peer) {
      push.tries = 0;
      push.asks = false;
      SetReceived(false, push);
      Hasten(now, push);
    } else if (!push.received && !push.on_wire) {
      Hasten(now, push);  // A refusal said that some view was behind; now one is newer.
    }
  }
  return lost;
}

const std::set<uint64_t>& UndurablePushes::Due(absl::Time now) {
  if (next_due_ > now) return due_;
  for (auto& [id, push] : pushes_) {
    if (push.again > now) continue;
    due_.insert(id);
    push.again = absl::InfiniteFuture();
  }
  UpdateNextDue();
  return due_;
}

void UndurablePushes::Sent(absl::Time now, Push& push) {
  ++push.tries;
  Postpone(now, push);
}

void UndurablePushes::UpdateNextDue() {
  next_due_ = absl::InfiniteFuture();
  for (const auto& [id, push] : pushes_) next_due_ = std::min(next_due_, push.again);
}

}  // namespace covey::client

// SPDX-License-Identifier: Apache-2.0
#include "client/engine/durability/undurable_pushes.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/engine/requests/active_operations.h"
#include "client/engine/requests/request_errors.h"
#include "client/engine/requests/request_message.h"
#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/base/small_limits.h"
#include "common/cluster/limits.h"
#include "common/cluster/retry_policy.h"
#include "common/net/frame_checksum.h"
#include "common/net/wire.h"

namespace covey::client {
namespace {

using State = ShardRequest::State;

// The reply that says "durable" comes unasked, usually within milliseconds; for a buffered table it
// may take as long as its groups need to fill the buffer.
constexpr absl::Duration kQueryAfter = absl::Seconds(2);
constexpr RetryPolicy kQueryRetry{.longest = absl::Seconds(16)};
// How long a server remembers to report that a push has become durable; then it is queried again.
constexpr absl::Duration kQueryDeadline = absl::Minutes(1);
constexpr size_t kSmallUndurableBytes = 8 << 10;

bool MayBeMissing(State state) {
  return state == State::kStranded || state == State::kResending || state == State::kUnconfirmed;
}

Address HeadOf(const ClusterView& view, ShardId id) {
  const proto::Shard* shard = view.FindShard(id);
  return shard == nullptr ? Address() : view.HeadOf(*shard);
}

// A group's new generation continues its steps, so the previous generation's pushes become its own.
void FollowGroup(const ClusterView& view, proto::PushRequest& push) {
  const proto::Group* group = view.FindGroup(GroupId(push.group()));
  if (group == nullptr || group->generation() <= push.group_generation()) return;
  push.set_group_generation(group->generation());
  push.mutable_id()->set_producer_incarnation(group->generation());
}

// The push was refused because a newer generation of its group had pushed, under which it may be
// resent, or because of a view that is still in flight to this client.
bool WasOvertaken(const ShardRequest& push, const Message& reply, const ClusterView& view) {
  if (push.producer == GroupId() || !absl::IsAborted(StatusOf(reply)) ||
      Planted(PlantedBug::kDropOvertakenPushes)) {
    return false;
  }
  const proto::Group* group = view.FindGroup(push.producer);
  return view.epoch() < Epoch(reply.envelope.header().epoch()) ||
         (group != nullptr &&
          reply.envelope.push_reply().id().producer_incarnation() < group->generation());
}

}  // namespace

bool UndurablePushes::HasRoomFor(size_t bytes) const {
  return bytes_ + bytes <= LimitInForce(kUndurableBytesPerClientMax, kSmallUndurableBytes);
}

void UndurablePushes::Keep(absl::Time now, Pushes::node_type node, const Address& receiver,
                           const ClusterView& view) {
  const auto inserted = pushes_.insert(std::move(node));
  COVEY_CHECK(inserted.inserted);
  ShardRequest& push = inserted.position->second;
  // A late reply of a replaced head says nothing about its successor.
  const bool is_of_head = receiver == push.head && receiver == HeadOf(view, push.shard);
  queue_.Withdraw(push, is_of_head ? State::kReceived : State::kStranded);
  if (!is_of_head) unconfirmed_[StreamOf(push)].insert(push.request_id);
  push.head = receiver;
  push.wire_bytes = push.kept->bytes();
  push.tries = 0;
  push.retry_at = absl::InfiniteFuture();
  if (push.owner == nullptr) bytes_ += push.kept->bytes();
  ScheduleQuery(now, push);
  if (!is_of_head || IsFlushed(push)) ScheduleNoLaterThan(now, push);
}

void UndurablePushes::MoveOutOf(const Buffer& memory) {
  const std::less<const uint8_t*> is_before;  // unlike <, defined for any two pointers
  const uint8_t* const end = memory.data() + memory.size();
  for (auto& [id, push] : pushes_) {
    Buffer& gradient = push.kept->gradient;
    if (push.owner != nullptr || is_before(gradient.data(), memory.data()) ||
        !is_before(gradient.data(), end)) {
      continue;
    }
    gradient = Buffer::CopyOf(gradient.bytes());
  }
}

ShardRequest* UndurablePushes::Find(uint64_t request_id) {
  const auto found = pushes_.find(request_id);
  return found == pushes_.end() ? nullptr : &found->second;
}

void UndurablePushes::Flush(absl::Time now, uint64_t before_request) {
  flushed_before_ = std::max(flushed_before_, before_request);
  for (auto& [id, push] : pushes_) {
    if (!IsFlushed(push)) break;
    // In the other states the push is being sent, or will be as soon as order and refusals allow.
    if (push.state() == State::kReceived) ScheduleNoLaterThan(now, push);
  }
}

void UndurablePushes::MoveTo(State next, ShardRequest& push) {
  if (push.state() == next) return;
  if (push.in_flight()) {
    queue_.Withdraw(push, next);
  } else {
    push.MoveTo(next);
  }
  if (MayBeMissing(next)) {
    unconfirmed_[StreamOf(push)].insert(push.request_id);
    return;
  }
  const auto stream = unconfirmed_.find(StreamOf(push));
  if (stream == unconfirmed_.end()) return;
  stream->second.erase(push.request_id);
  if (stream->second.empty()) unconfirmed_.erase(stream);
}

void UndurablePushes::End(ShardRequest& push, const absl::Status& lost) {
  MoveTo(State::kOver, push);
  ForgetDue(push);
  SetTimer(absl::InfiniteFuture(), push);
  const Pushes::node_type over = pushes_.extract(push.request_id);
  if (push.owner == nullptr) bytes_ -= push.kept->bytes();
  if (!lost.ok()) ++counters_.lost_pushes;
  ended_(push, lost);
}

void UndurablePushes::SetTimer(absl::Time when, ShardRequest& push) {
  if (when == push.retry_at) return;
  timers_.erase({push.retry_at, push.request_id});
  push.retry_at = when;
  if (when != absl::InfiniteFuture()) timers_.insert({when, push.request_id});
}

void UndurablePushes::ForgetDue(const ShardRequest& push) {
  const auto stream = due_.find(StreamOf(push));
  if (stream == due_.end()) return;
  stream->second.erase(push.request_id);
  if (stream->second.empty()) due_.erase(stream);
}

void UndurablePushes::ScheduleQuery(absl::Time now, ShardRequest& push) {
  ForgetDue(push);
  SetTimer(now + UpToATenthLonger(kQueryRetry.DelayAfter(push.tries, kQueryAfter), random_), push);
}

void UndurablePushes::ScheduleNoLaterThan(absl::Time when, ShardRequest& push) {
  SetTimer(std::min(push.retry_at, when), push);
}

absl::Time UndurablePushes::next_due() const {
  return timers_.empty() ? absl::InfiniteFuture() : timers_.begin()->first;
}

bool UndurablePushes::HoldsBack(uint64_t request_id, ShardId shard, GroupId producer) const {
  if (unconfirmed_.empty()) return false;
  const auto found = unconfirmed_.find({shard, producer});
  return found != unconfirmed_.end() && *found->second.begin() < request_id;
}

Step UndurablePushes::FirstUnconfirmed() const {
  Step first;
  for (const auto& [stream, ids] : unconfirmed_) {
    for (const uint64_t id : ids) {
      const Step step(pushes_.at(id).kept->body.step());
      if (step != Step() && (first == Step() || step < first)) first = step;
    }
  }
  return first;
}

void UndurablePushes::FollowView(absl::Time now, const ClusterView& view) {
  std::vector<ShardRequest*> unreachable;
  for (auto& [id, push] : pushes_) {
    const proto::Shard* shard = view.FindShard(push.shard);
    if (shard == nullptr || shard->generation() != push.kept->body.shard_generation()) {
      unreachable.push_back(&push);
    } else if (view.HeadOf(*shard) != push.head) {
      push.tries = 0;
      MoveTo(State::kStranded, push);
      ScheduleNoLaterThan(now, push);
    } else if (push.state() == State::kStranded || push.state() == State::kUnconfirmed) {
      // It was refused because some view was behind; the view is newer now.
      ScheduleNoLaterThan(now, push);
    }
  }
  for (ShardRequest* push : unreachable) {
    const bool was_dropped = view.FindTable(push->shard.table) == nullptr;  // on purpose
    End(*push, was_dropped ? absl::OkStatus() : ContentLostError(view, *push));
  }
}

void UndurablePushes::CollectDue(absl::Time now) {
  while (next_due() <= now) {
    ShardRequest& push = pushes_.at(timers_.begin()->second);
    SetTimer(absl::InfiniteFuture(), push);
    due_[StreamOf(push)].insert(push.request_id);
  }
}

void UndurablePushes::SendDue(absl::Time now, const ClusterView& view, Outbox& outbox) {
  CollectDue(now);
  for (auto next = due_.begin(); next != due_.end();) {
    const Stream stream = next->first;
    // A push that must wait holds back the later ones of its stream.
    while (next != due_.end() && next->first == stream &&
           SendIfPossible(now, pushes_.at(*next->second.begin()), view, outbox)) {
      next = due_.lower_bound(stream);
    }
    next = due_.upper_bound(stream);
  }
}

bool UndurablePushes::SendIfPossible(absl::Time now, ShardRequest& push, const ClusterView& view,
                                     Outbox& outbox) {
  const Address head = HeadOf(view, push.shard);
  if (head.node == NodeId()) {
    ScheduleQuery(now, push);
    return true;
  }
  // It stays due until the head has the earlier pushes, or until a reply makes room.
  if (HoldsBack(push.request_id, push.shard, push.producer)) return false;
  const bool with_bytes = push.state() == State::kStranded;
  if (with_bytes) {
    if (!queue_.HasRoom(head, push)) return false;
    push.head = head;
    queue_.Send(now, push);
  }
  const absl::Time reply_expected = now + queue_.ResendPatience(head, push.tries);
  ++push.tries;
  ScheduleQuery(now, push);
  // The caller waits for a push that it has flushed, and for one that this client has no memory to
  // keep. Those of others may wait for this caller's next ones.
  const bool is_waited_for = IsFlushed(push) || push.owner != nullptr;
  // Other requests may wait for a push that the head may lack. In both cases its reply is expected
  // within the usual time.
  if (push.state() != State::kReceived || is_waited_for) {
    ScheduleNoLaterThan(reply_expected, push);
  }
  ++counters_.repeats;
  routes_.Ensure(head, view, outbox);
  Message message = MessageTo(push, view.epoch());
  FollowGroup(view, push.kept->body);
  *message.envelope.mutable_push_request() = push.kept->body;
  message.envelope.mutable_push_request()->set_deadline_ms(DeadlineMs(now, now + kQueryDeadline));
  message.envelope.mutable_push_request()->set_flush(is_waited_for);
  if (with_bytes && !push.kept->gradient.empty()) {
    AddKeys(push.kept->keys, message);
    AddFrame(message, push.kept->gradient, *push.checksum);
  }
  counters_.bytes_sent += WireBytes(message);
  outbox.Send(std::move(message));
  return true;
}

void UndurablePushes::HandleReply(absl::Time now, ShardRequest& push, const Message& reply,
                                  const ClusterView& view) {
  const absl::Status status = StatusOf(reply);
  const proto::PushReply& pushed = reply.envelope.push_reply();
  // A replaced head says nothing about the head that the push is in flight to.
  if (reply.from() != push.head && !(status.ok() && pushed.durable())) return;
  if (push.state() == State::kResending) {
    if (status.ok()) queue_.OnResendReply(push, reply.envelope.credit_bytes());
    if (absl::IsResourceExhausted(status)) queue_.OnRefusal(push);
    MoveTo(State::kUnconfirmed, push);
  }
  if (status.ok()) {
    HandleSuccess(now, push, pushed, view);
    return;
  }
  const bool is_slow_chain = absl::IsDeadlineExceeded(status);
  if (!is_slow_chain && !IsRetryable(status) && !WasOvertaken(push, reply, view)) {
    End(push, RefusedForGoodError(view, push, status));
    return;
  }
  // A chain that takes longer than an attempt may yet make the push durable; a server that refuses
  // the push does not have it.
  if (!is_slow_chain) MoveTo(State::kStranded, push);
  if (absl::IsResourceExhausted(status)) ++counters_.refusals;
  if (absl::IsDataLoss(status)) ++counters_.damaged;
  const absl::Duration asked = absl::Milliseconds(reply.envelope.status().retry_after_ms());
  ScheduleNoLaterThan(now + queue_.RefusalDelay(push.tries, asked), push);
}

void UndurablePushes::HandleSuccess(absl::Time now, ShardRequest& push,
                                    const proto::PushReply& pushed, const ClusterView& view) {
  const uint64_t generation = pushed.state().generation();
  if (generation != 0 && generation != push.kept->body.shard_generation()) return;
  if (pushed.durable()) {
    push_times_.Record(now - push.started);
    End(push, absl::OkStatus());
    return;
  }
  // The view already names another head, to which the push has yet to be sent.
  if (push.head != HeadOf(view, push.shard)) return;
  MoveTo(State::kReceived, push);
  ScheduleQuery(now, push);
}

void UndurablePushes::GiveUp(const ActiveOperation& owner) {
  if (owner.undurable == 0) return;
  std::vector<ShardRequest*> its;
  for (auto& [id, push] : pushes_) {
    if (push.owner == &owner) its.push_back(&push);
  }
  for (ShardRequest* push : its) End(*push, absl::OkStatus());
}

void UndurablePushes::FailAll(const ClusterView& view, const absl::Status& status) {
  while (!pushes_.empty()) {
    ShardRequest& push = pushes_.begin()->second;
    End(push, UnknownDurabilityError(view, push, status));
  }
}

absl::Status UndurablePushes::LeftBefore(uint64_t request_id, const ClusterView& view) const {
  if (pushes_.empty() || pushes_.begin()->first >= request_id) return absl::OkStatus();
  return NotDurableError(view, pushes_.begin()->second, pushes_.size());
}

}  // namespace covey::client

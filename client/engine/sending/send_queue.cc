// SPDX-License-Identifier: Apache-2.0
#include "client/engine/sending/send_queue.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/cluster/retry_policy.h"

namespace covey::client {
namespace {

using State = ShardRequest::State;

constexpr absl::Duration kRefusedRetryFirst = absl::Milliseconds(2);
constexpr RetryPolicy kRefusedRetry{.longest = absl::Milliseconds(200)};
// Later requests wait for a push that is sent again, so its delay grows less.
constexpr RetryPolicy kResendRetry{.doublings_max = 3};
// However long a server asks a client to stay away, the client tries again after this duration.
constexpr absl::Duration kAskedDelayLongest = absl::Seconds(10);
constexpr absl::Duration kChainChangedRetry = absl::Milliseconds(50);

size_t BytesToCount(const ShardRequest& request) {
  return request.query_only ? 0 : request.wire_bytes;
}

}  // namespace

SendQueue::Peer& SendQueue::PeerAt(const Address& address) {
  return peers_
      .try_emplace(address,
                   Peer{.window = ServerWindow(options_.budget), .round_trip = {}, .queued = {}})
      .first->second;
}

void SendQueue::Enqueue(ShardRequest& request) {
  request.MoveTo(State::kQueued);
  PeerAt(request.head).queued.emplace(request.request_id, &request);
}

void SendQueue::Withdraw(ShardRequest& request, State next) {
  if (request.state() == State::kQueued) {
    PeerAt(request.head).queued.erase(request.request_id);
  } else if (request.in_flight()) {
    PeerAt(request.head).window.Gone(request.counted_bytes);
    bytes_in_flight_ -= request.counted_bytes;
    in_flight_.erase(request.request_id);
  }
  request.query_only = false;
  if (request.state() != next) request.MoveTo(next);
}

ShardRequest* SendQueue::Next(absl::FunctionRef<bool(const ShardRequest&)> held_back) {
  ShardRequest* next = nullptr;
  for (auto& [address, peer] : peers_) {
    const auto first = std::find_if(peer.queued.begin(), peer.queued.end(),
                                    [&](const auto& entry) { return !held_back(*entry.second); });
    if (first == peer.queued.end()) continue;
    if (next != nullptr && next->request_id < first->first) continue;
    if (FitsWindow(peer, *first->second)) next = first->second;
  }
  return next != nullptr && FitsBudget(*next) ? next : nullptr;
}

bool SendQueue::NeedsNoRoom(const ShardRequest& request) const {
  return BytesToCount(request) == 0 || in_flight_.empty() ||
         request.request_id < *in_flight_.begin();
}

bool SendQueue::FitsWindow(const Peer& peer, const ShardRequest& request) const {
  return NeedsNoRoom(request) || peer.window.MaySend(BytesToCount(request));
}

bool SendQueue::FitsBudget(const ShardRequest& request) const {
  return NeedsNoRoom(request) || bytes_in_flight_ == 0 ||
         bytes_in_flight_ + BytesToCount(request) <= options_.budget;
}

void SendQueue::Send(absl::Time now, ShardRequest& request) {
  Peer& peer = PeerAt(request.head);
  if (request.state() == State::kQueued) {
    peer.queued.erase(request.request_id);
    request.MoveTo(State::kInFlight);
  } else {
    request.MoveTo(State::kResending);
  }
  request.counted_bytes = BytesToCount(request);
  request.window_number = peer.window.Send(request.counted_bytes);
  request.first_sent = now;
  bytes_in_flight_ += request.counted_bytes;
  in_flight_.insert(request.request_id);
}

bool SendQueue::HasRoom(const Address& head, const ShardRequest& push) {
  return FitsWindow(PeerAt(head), push) && FitsBudget(push);
}

void SendQueue::OnReply(absl::Time now, const ShardRequest& request, size_t credit_bytes) {
  COVEY_CHECK(request.in_flight());
  Peer& peer = PeerAt(request.head);
  peer.window.Answered(request.wire_bytes, credit_bytes);
  if (request.tries == 1) {
    peer.round_trip.NoteFirst(now - request.first_sent);
  } else {
    peer.round_trip.NoteRepeated(now - request.first_sent, options_.retry_after);
  }
}

void SendQueue::OnResendReply(const ShardRequest& request, size_t credit_bytes) {
  PeerAt(request.head).window.Answered(request.wire_bytes, credit_bytes);
}

void SendQueue::OnRefusal(const ShardRequest& request) {
  PeerAt(request.head).window.Refused(request.window_number);
}

absl::Duration SendQueue::UsualPatience(const Address& head) {
  return PeerAt(head).round_trip.Patience(options_.retry_after, options_.retry_after_longest);
}

absl::Duration SendQueue::ReplyPatience(const Address& head, int tries) {
  const RetryPolicy policy{.longest = options_.retry_after_longest};
  return UpToATenthLonger(policy.DelayAfter(tries, UsualPatience(head)), random_);
}

absl::Duration SendQueue::ResendPatience(const Address& head, int tries) {
  return kResendRetry.DelayAfter(tries, UsualPatience(head));
}

absl::Duration SendQueue::RefusalDelay(int refusals, absl::Duration asked) {
  const absl::Duration usual = kRefusedRetry.DelayAfter(refusals, kRefusedRetryFirst);
  asked = std::min(kAskedDelayLongest, asked);
  if (asked > absl::ZeroDuration()) return std::max(usual, asked * (1 + 0.5 * random_.Uniform()));
  return DownToHalf(usual, random_);
}

absl::Duration SendQueue::ChainChangeDelay() {
  return kChainChangedRetry * (1 + random_.Uniform());
}

void SendQueue::ForgetIdle(absl::FunctionRef<bool(NodeId)> is_gone) {
  std::erase_if(peers_, [&](const auto& entry) {
    return entry.second.queued.empty() && entry.second.window.idle() && is_gone(entry.first.node);
  });
}

}  // namespace covey::client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "client/engine/requests/shard_request.h"
#include "client/engine/sending/server_window.h"
#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "common/net/round_trip.h"

namespace covey::client {

// Decides when a request may leave, and when it is retried; for pulls, for pushes, and for pushes
// that are resent after they were received. There is one queue per server loop, with the window
// that the server grants (server_window.h) and the time its replies take, and one byte budget for
// all.
//
// Bytes in flight never exceed the budget, nor those to one server loop its window; but a request
// that is older than all in flight may always go, however large, and so may a query without bytes.
// Requests to one loop leave in the order of their ids, which is that of their operations.
//
// Servers hold pushes until other groups have pushed, too (bsp), and held pushes may fill the
// budget and the windows of all groups. No group waits for ever:
//  - Groups push in one order: the first push that a server still waits for is the oldest that its
//    group has left, so it may go.
//  - Groups push in different orders: a push that its server has confirmed counts no longer, and a
//    server that does not reply is queried (ReplyPatience).
//
// Not owned: the requests; a request in the queue or in flight must be withdrawn before it ends.
// Actor-confined. Deterministic in its options.
class SendQueue {
 public:
  struct Options {
    size_t budget = 0;
    // A request without a reply is retried after this duration, or twice what the server's replies
    // take if that is longer; then after 2, 4, 8 … times that duration.
    absl::Duration retry_after = absl::Seconds(1);
    absl::Duration retry_after_longest = absl::Seconds(8);
    uint64_t seed = 0;
  };

  explicit SendQueue(const Options& options) : options_(options), random_(options.seed) {}

  // kBackingOff → kQueued, at `request.head`.
  void Enqueue(ShardRequest& request);
  // Takes a request out of the queue or out of flight, and moves it to `next`. A push carries its
  // bytes when it is sent next.
  void Withdraw(ShardRequest& request, ShardRequest::State next);
  // The oldest request that may leave now; null when there is none. `held_back` says which requests
  // must wait for another one, although window and budget have room.
  ShardRequest* Next(absl::FunctionRef<bool(const ShardRequest&)> held_back);
  // kQueued → kInFlight, or kStranded → kResending; its bytes count from now on.
  void Send(absl::Time now, ShardRequest& request);
  // Whether a push that must be resent may go to `head` now.
  bool HasRoom(const Address& head, const ShardRequest& push);

  // `request` was answered with success while in flight: updates its server's window and reply
  // time. `credit_bytes` as in Envelope.credit_bytes.
  void OnReply(absl::Time now, const ShardRequest& request, size_t credit_bytes);
  // The same, without effect on the reply time: the reply to a push that was resent.
  void OnResendReply(const ShardRequest& request, size_t credit_bytes);
  // `request` was refused with RESOURCE_EXHAUSTED while in flight.
  void OnRefusal(const ShardRequest& request);

  // How long to wait for the reply of a request that was sent `tries` times before. With jitter.
  absl::Duration ReplyPatience(const Address& head, int tries);
  // The same for a push that was resent; without jitter, since other requests wait for it.
  absl::Duration ResendPatience(const Address& head, int tries);
  // How long to wait after the given number of refusals before this one. Never shorter than the
  // server asked for. With jitter, so that clients do not all return at once.
  absl::Duration RefusalDelay(int refusals, absl::Duration asked);
  // How soon to query a head whose chain has changed. Nothing should be lost, but the first retry
  // need not wait for the whole reply time. With jitter.
  absl::Duration ChainChangeDelay();

  // Forgets servers that `is_gone` and to which nothing is queued or in flight.
  void ForgetIdle(absl::FunctionRef<bool(NodeId)> is_gone);

  size_t bytes_in_flight() const { return bytes_in_flight_; }

 private:
  // A server's data loop.
  struct Peer {
    ServerWindow window;
    RoundTrip round_trip;
    std::map<uint64_t, ShardRequest*> queued;  // by request id
  };

  Peer& PeerAt(const Address& address);
  absl::Duration UsualPatience(const Address& head);
  // It is older than all in flight, or asks for a reply without bytes of its own.
  bool NeedsNoRoom(const ShardRequest& request) const;
  bool FitsWindow(const Peer& peer, const ShardRequest& request) const;
  bool FitsBudget(const ShardRequest& request) const;

  const Options options_;
  Random random_;
  std::map<Address, Peer> peers_;
  std::set<uint64_t> in_flight_;  // request ids
  size_t bytes_in_flight_ = 0;
};

}  // namespace covey::client

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/counters.h"
#include "client/engine/durability/flush_tracker.h"
#include "client/engine/durability/undurable_pushes.h"
#include "client/engine/operation.h"
#include "client/engine/requests/active_operations.h"
#include "client/engine/requests/request_message.h"
#include "client/engine/requests/shard_request.h"
#include "client/engine/sending/push_window.h"
#include "client/engine/sending/send_queue.h"
#include "client/engine/sending/server_routes.h"
#include "client/engine/sending/unanswered_requests.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/metrics/duration_histogram.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"

namespace covey::client {

// The data-plane half of a client. Cuts operations into one request per shard, routes them by the
// view, and retries each request under the same identity until it is answered or its deadline has
// expired. The life of a request is drawn above ShardRequest; the parts of the engine:
//
//   Start ─▶ ActiveOperations ─▶ UnansweredRequests ──▶ SendQueue ──▶ Outbox
//                  ▲                   │  ▲                 ▲
//                  │ reply             │  └─ Receive        │ another head
//                  ├───────────────────┤                    │
//                  │                   └─ received ─▶ UndurablePushes ─▶ FlushTracker: lost
//                  └────────────────────── durable ──────┘
//
// Invariants:
// 1. Bytes in flight never exceed the budget, nor those to one server loop its window
//    (server_window.h), except for requests that are older than all in flight.
// 2. Requests to one loop leave in the order of their operations, except that a push (or a read by
//    the same producer) waits until the head has that producer's earlier undurable pushes, and a
//    push waits until its shard will still know its producer's oldest one (push_window.h).
// 3. A push never changes its push id.
// 4. An operation is done only when no frame of its gradient is referenced any more, unless the
//    caller shares that memory with the engine (Operation::gradient_memory).
// 5. Versions never go back (version_floor.h). An older reply, from a replaced head that does not
//    know it was replaced, is refused and the request retried.
// 6. Values are copied out only when they equal their checksum; otherwise they are requested again.
//
// Actor-confined. Deterministic in its options.
class RequestEngine {
 public:
  struct Options {
    Incarnation incarnation;
    size_t bytes_in_flight_max = 0;  // 0 = kClientBytesInFlightDefault
    // As SendQueue::Options.
    absl::Duration retry_after = absl::Seconds(1);
    absl::Duration retry_after_longest = absl::Seconds(8);
    uint64_t seed = 0;
    // Called for each push that had been received and is lost; for the log. May be empty.
    std::function<void(const absl::Status&)> push_lost;
  };

  // `next_request_id` is shared with the other machines of the loop and outlives this one.
  RequestEngine(const Options& options, uint64_t& next_request_id);
  RequestEngine(const RequestEngine&) = delete;
  RequestEngine& operator=(const RequestEngine&) = delete;

  // Requests follow the newest view; peers' routes are set from it. `self` is known after
  // registration.
  void SetView(absl::Time now, NodeId self, std::shared_ptr<const ClusterView> view,
               Outbox& outbox);

  // NOT_FOUND: no such table in the view (yet). INVALID_ARGUMENT: see ShardsOf. After an error
  // `done` is not called; everything later arrives through `done`.
  absl::Status Start(absl::Time now, Operation operation, Outbox& outbox);

  enum class FlushScope {
    kAll,       // every push that was started before
    kReceived,  // those of them that a server has received: does not wait for replies
  };
  // Calls `done` once, when every push that was started before has ended, and is durable if it was
  // received. Servers are asked not to let these pushes wait for pushes of others in a buffer.
  // DATA_LOSS: since the last flush, pushes were lost that a server had received; names
  // one. Either the content of their shard was lost, or the new head refused them. ABORTED: the
  // same, or they may have been applied: this node was declared dead, or its group has a newer
  // generation, so the node learns nothing more. DEADLINE_EXCEEDED: names a push that is left, with
  // its shard and server.
  void Flush(absl::Time now, FlushScope scope, absl::Time deadline, FlushTracker::Done done,
             Outbox& outbox);

  // Copies the undurable pushes that lie in `memory`, which operations that have ended have shared.
  // Afterwards only frames that are being sent again may refer to it. Linear in the number of
  // undurable pushes.
  void ReleaseGradient(const Buffer& memory) { undurable_.MoveOutOf(memory); }

  // Until it is set again, no operation of a group is over its deadline before `floor`: a worker
  // that it may wait for at the servers is away.
  void SetGroupDeadlineFloor(absl::Time floor);

  // Ends every operation with `status` (their memory is released first), forgets the undurable
  // pushes, and ends every flush.
  void FailAll(absl::Time now, const absl::Status& status, Outbox& outbox);
  // Ends the operations of one group with `status`.
  void FailGroup(absl::Time now, GroupId group, const absl::Status& status, Outbox& outbox);

  // True when the message was a reply for this engine.
  bool Receive(absl::Time now, const Message& message, Outbox& outbox);
  void Wake(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const { return next_wake_; }

  // The first step of a group's pushes that the present head of its shard may lack: no server has
  // answered it yet, or the one that had received it is not the head any more. Step() = none.
  Step FirstUnconfirmed() const;

  size_t operations() const { return operations_.all().size(); }
  size_t bytes_in_flight() const { return queue_.bytes_in_flight(); }
  // Pushes that were received and are not durable yet, and the memory they take.
  size_t undurable_pushes() const { return undurable_.size(); }
  size_t undurable_bytes() const { return undurable_.bytes(); }
  const Counters& counters() const { return counters_; }
  // From the start of each push to a shard until this engine has learned that it is durable.
  const DurationHistogram& push_times() const { return push_times_; }

 private:
  // Sends what window, budget and order allow.
  void Pump(absl::Time now, Outbox& outbox);
  // Whether an earlier undurable push must reach the head before `request`, or has to end before
  // it leaves.
  bool IsHeldBack(const ShardRequest& request) const;
  void HandleReply(absl::Time now, ShardRequest& request, const Message& reply, Outbox& outbox);
  // A push was received and is not durable; the first half of its life ends.
  void KeepUndurable(absl::Time now, ShardRequest& push, const Address& receiver);
  void PushEnded(const ShardRequest& push, const absl::Status& lost);

  // Ends a request; a failure also ends the other requests of its operation.
  void Finish(ShardRequest& request, absl::Status status, Outbox& outbox);
  void FinishUnanswered(ActiveOperation& active, const absl::Status& status, Outbox& outbox);
  // Ends an operation's remaining requests.
  void Fail(ActiveOperation& active, const absl::Status& status, Outbox& outbox);
  void FailExpired(absl::Time now, Outbox& outbox);
  void SetDeadline(ActiveOperation& active);
  void MarkIfOver(ActiveOperation& active);
  // Frames that still wait for an unreachable peer are released with its connection.
  void ReleaseFrames(const ActiveOperation& active, Outbox& outbox);
  void Retire(absl::Time now, Outbox& outbox);
  void CheckFlushes(absl::Time now, Outbox& outbox);
  void WakeBy(absl::Time time) { next_wake_ = std::min(next_wake_, time); }

  const Options options_;
  uint64_t& next_request_id_;
  Sender self_;
  std::shared_ptr<const ClusterView> view_;
  Counters counters_;
  DurationHistogram push_times_{DurationHistogram::kWide};
  SendQueue queue_;
  PushWindow window_;
  ServerRoutes routes_;
  FlushTracker flushes_;
  ActiveOperations operations_;
  UnansweredRequests unanswered_;
  UndurablePushes undurable_;
  absl::Time group_deadline_floor_ = absl::InfinitePast();
  // Never later than the next due action; recomputed by Wake, so that a message costs no search.
  absl::Time next_wake_ = absl::InfiniteFuture();
};

}  // namespace covey::client

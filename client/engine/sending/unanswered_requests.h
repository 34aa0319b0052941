// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "client/counters.h"
#include "client/engine/requests/active_operations.h"
#include "client/engine/requests/request_message.h"
#include "client/engine/requests/shard_reply.h"
#include "client/engine/requests/shard_request.h"
#include "client/engine/sending/kept_key_lists.h"
#include "client/engine/sending/push_window.h"
#include "client/engine/sending/send_queue.h"
#include "client/engine/sending/server_routes.h"
#include "client/engine/sending/version_floor.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"

namespace covey::client {

// The first half of a request's life: from the start of its operation until a reply has everything
// the request asked for (the first three states of ShardRequest). Each request is retried under the
// same identity, at the shard's current head. The second half, of a push that was received and is
// not durable, is in undurable_pushes.h.
//
// Actor-confined. Deterministic.
class UnansweredRequests {
 public:
  using Requests = std::map<uint64_t, ShardRequest>;  // by request id
  // The request's table was dropped; the callee takes the request out.
  using Dropped = std::function<void(ShardRequest& request, Outbox& outbox)>;

  // The collaborators outlive this. `next_request_id` is shared with other machines of the loop.
  UnansweredRequests(uint64_t& next_request_id, SendQueue& queue, PushWindow& window,
                     ServerRoutes& routes, Counters& counters, Dropped dropped)
      : next_request_id_(next_request_id),
        queue_(queue),
        window_(window),
        routes_(routes),
        counters_(counters),
        dropped_(std::move(dropped)) {}

  // Cuts an operation into requests, with consecutive ids from `owner.first_request` on, and puts
  // them into the queues of their shards' heads. A push begins in the window; the caller ends it
  // there.
  void Start(absl::Time now, ActiveOperation& owner, const ShardRange& shards,
             const proto::Table& table, const ClusterView& view, Outbox& outbox);
  // A request whose shard has another head is sent to it at once.
  void FollowView(absl::Time now, const ClusterView& view);
  // Sends the requests that window and budget allow, except those that are `held_back`.
  void SendQueued(absl::Time now, const Sender& self, const ClusterView& view,
                  absl::FunctionRef<bool(const ShardRequest&)> held_back, Outbox& outbox);
  // Retries requests that were not answered in time, and queues those whose back-off has ended.
  void RepeatDue(absl::Time now, const Sender& self, const ClusterView& view, Outbox& outbox);
  // After kAccepted the operation's result includes the reply. After kAccepted and kFailed the
  // caller takes the request out; otherwise it backs off.
  Verdict HandleReply(absl::Time now, ShardRequest& request, const Message& reply,
                      const ClusterView& view);

  // Null when there is none.
  ShardRequest* Find(uint64_t request_id);
  // Precondition: `owner` has unanswered requests.
  ShardRequest& FirstOf(const ActiveOperation& owner);
  // Takes a request out in its present state; it may still be queued or in flight.
  Requests::node_type Take(const ShardRequest& request);

  // Never later than the next retry; exact after UpdateNextDue.
  absl::Time next_due() const { return next_due_; }
  void UpdateNextDue();

 private:
  void Add(absl::Time now, ActiveOperation& owner, const ShardRange& shards,
           const proto::Shard& shard);
  // Puts a backing-off request into the queue of its shard's current head.
  void Enqueue(absl::Time now, ShardRequest& request, const ClusterView& view, Outbox& outbox);
  void FollowHead(absl::Time now, ShardRequest& request, const ClusterView& view);
  // Precondition: in flight.
  void Transmit(absl::Time now, const Sender& self, const ClusterView& view, Attempt attempt,
                ShardRequest& request, Outbox& outbox);
  // Whether the request's head keeps its keys, as far as this client knows.
  bool IsKeyListKept(const ShardRequest& request) const;
  // The head does not keep the keys that the request has named.
  static bool AreKeysUnknown(const ShardRequest& request, const Message& reply);
  void BackOff(absl::Time now, ShardRequest& request, const Message& reply, const Verdict& verdict);
  void RetryAt(absl::Time when, ShardRequest& request) {
    request.retry_at = when;
    next_due_ = std::min(next_due_, when);
  }

  uint64_t& next_request_id_;
  SendQueue& queue_;
  PushWindow& window_;
  ServerRoutes& routes_;
  Counters& counters_;
  const Dropped dropped_;
  VersionFloor versions_;
  KeptKeyLists kept_key_lists_;
  // The newest sequence, for pushes of this client.
  absl::flat_hash_map<ShardId, uint64_t> sequences_;
  Requests requests_;
  absl::Time next_due_ = absl::InfiniteFuture();
};

}  // namespace covey::client

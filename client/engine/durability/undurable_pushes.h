// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/counters.h"
#include "client/engine/requests/shard_request.h"
#include "client/engine/sending/send_queue.h"
#include "client/engine/sending/server_routes.h"
#include "common/base/buffer.h"
#include "common/base/random.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/metrics/duration_histogram.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"

namespace covey::client {

// The second half of a push's life: from the reply that a server has received it until it is
// durable (the four states from kReceived to kUnconfirmed). A push is kept here so that it can be
// resent under the same identity when its shard gets another head. A group's push continues under
// the group's newest generation, because servers refuse an older one once a newer one has pushed.
// The head is queried periodically, without the bytes, in case the reply that says "durable" was
// lost. After Flush, and while its operation waits, it is queried at once, and each query asks it
// to apply a buffer that holds the push (PushRequest.flush), until the push is durable.
//
// Order: a head that lacks a producer's earlier push must not get a later one, or its clock would
// pass the gap. So from a change of the head until the new head has received a push, that push
// holds back the later ones of the same producer to the same shard, and that producer's reads.
//
// Memory: a push whose operation waits borrows the operation's gradient. The others are kept in
// memory of this client, or in memory that their operation shared (Operation::gradient_memory),
// until MoveOutOf. Limits: kUndurableBytesPerClientMax of both together (HasRoomFor). What is
// borrowed is not counted. Actor-confined. Deterministic.
class UndurablePushes {
 public:
  // The push has ended: durable, given up (OK), or lost. Called before it is forgotten.
  using Ended = std::function<void(const ShardRequest& push, const absl::Status& lost)>;
  using Pushes = std::map<uint64_t, ShardRequest>;  // by request id

  // The collaborators outlive this. `push_times`: RequestEngine::push_times.
  UndurablePushes(uint64_t seed, SendQueue& queue, ServerRoutes& routes, Counters& counters,
                  DurationHistogram& push_times, Ended ended)
      : random_(seed),
        queue_(queue),
        routes_(routes),
        counters_(counters),
        push_times_(push_times),
        ended_(ended) {}

  bool HasRoomFor(size_t bytes) const;
  // Takes over a push that `receiver` has received. Preconditions: in one of the first three
  // states; `kept` and `checksum` are set; `owner` is null exactly if the bytes are the client's
  // own or shared.
  void Keep(absl::Time now, Pushes::node_type push, const Address& receiver,
            const ClusterView& view);
  // Copies the pushes without an owner that lie in `memory`, so that they no longer refer to it.
  void MoveOutOf(const Buffer& memory);
  // Null when there is none.
  ShardRequest* Find(uint64_t request_id);

  // The caller waits for the pushes with smaller request ids, those to come included: SendDue asks
  // their heads not to let them wait for pushes of others. Idempotent.
  void Flush(absl::Time now, uint64_t before_request);

  // A reply to `push`; it may end here.
  void HandleReply(absl::Time now, ShardRequest& push, const Message& reply,
                   const ClusterView& view);
  // Strands the pushes whose shard has another head now, and ends those that can never become
  // durable because their table is gone or their shard's content was lost.
  void FollowView(absl::Time now, const ClusterView& view);
  // Sends the due pushes, the oldest of each producer and shard first, as far as window, budget and
  // order allow. A push stays due until it was sent. Linear in those that are sent and in the
  // producers and shards with one that is due, however many pushes are kept.
  void SendDue(absl::Time now, const ClusterView& view, Outbox& outbox);
  // Whether an earlier push of `producer` must reach the shard's present head before this request.
  // No producer = the client.
  bool HoldsBack(uint64_t request_id, ShardId shard, GroupId producer) const;

  // The first step of a group's pushes that the present head of its shard may lack. Step() = none.
  Step FirstUnconfirmed() const;

  // Forgets the pushes that an operation waits for.
  void GiveUp(const ActiveOperation& owner);
  // Forgets all pushes; `status` is the reason why their durability is unknown.
  void FailAll(const ClusterView& view, const absl::Status& status);

  // When to call SendDue next; never later than the next push is due. Pushes that are already due
  // wait for a reply that makes room.
  absl::Time next_due() const;
  // OK when no push with a smaller request id is left; otherwise names the oldest.
  absl::Status LeftBefore(uint64_t request_id, const ClusterView& view) const;
  size_t size() const { return pushes_.size(); }
  // The bytes in the client's own memory, or in shared memory.
  size_t bytes() const { return bytes_; }

 private:
  // The pushes of one producer to one shard, whose order matters.
  using Stream = std::pair<ShardId, GroupId>;

  static Stream StreamOf(const ShardRequest& push) { return {push.shard, push.producer}; }
  bool IsFlushed(const ShardRequest& push) const { return push.request_id < flushed_before_; }
  // Keeps unconfirmed_ in sync.
  void MoveTo(ShardRequest::State next, ShardRequest& push);
  void SetTimer(absl::Time when, ShardRequest& push);
  void ForgetDue(const ShardRequest& push);
  // Schedules the next query of a push that its head has.
  void ScheduleQuery(absl::Time now, ShardRequest& push);
  void ScheduleNoLaterThan(absl::Time when, ShardRequest& push);
  void CollectDue(absl::Time now);
  // False: it must wait, and stays due.
  bool SendIfPossible(absl::Time now, ShardRequest& push, const ClusterView& view, Outbox& outbox);
  void HandleSuccess(absl::Time now, ShardRequest& push, const proto::PushReply& pushed,
                     const ClusterView& view);
  // `lost` is OK unless the push is lost, or may be.
  void End(ShardRequest& push, const absl::Status& lost);

  Random random_;
  SendQueue& queue_;
  ServerRoutes& routes_;
  Counters& counters_;
  DurationHistogram& push_times_;
  const Ended ended_;
  Pushes pushes_;
  // The pushes that their shard's head may lack, by stream.
  std::map<Stream, std::set<uint64_t>> unconfirmed_;
  // The pushes with a retry_at, by it; and those of which it has passed, by stream.
  std::set<std::pair<absl::Time, uint64_t>> timers_;
  std::map<Stream, std::set<uint64_t>> due_;
  // Pushes with smaller request ids are flushed.
  uint64_t flushed_before_ = 0;
  size_t bytes_ = 0;
};

}  // namespace covey::client

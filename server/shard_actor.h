#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"
#include "server/neighbour_routes.h"
#include "server/replication/replica.h"
#include "server/replication/shard_counters.h"
#include "server/shard/shard.h"
#include "server/table/spare_buffers.h"

namespace covey::server {

// One data loop of a server: hosts the shards that the view places on it, and answers pushes and
// pulls.
//
// In whose chain it is the head, it serves (shard.h); for the others it is a replica (replica.h).
//
// It learns its own address and the view from WatchViewReply messages of the control loop, which
// come without a connection; a stranger's have one and are dropped. A shard is opened at the first
// request for it, or when the loop has nothing else to do; opening fills it from the initializer.
// It is closed, and its content lost, when the view takes it away or gives it a new generation; and
// stays through every other change of its chain.
//
// A shard that nobody else holds in full lives under a lease: once the control loop has told of no
// answer of the scheduler for so long, another server may have begun it anew, so requests and
// whoever waits are refused until there is one: UNAVAILABLE, and nothing that is due happens. Where
// a second server holds it, nothing is durable without that one, and no clock matters.
//
// A request for a shard that is not here is refused: UNAVAILABLE when the sender's view is newer
// (retry, the view is on its way), NOT_FOUND when there is no such table or shard,
// FAILED_PRECONDITION when it lives elsewhere or under another generation. Every request gets one
// answer or, past its deadline, none that matters.
//
// Actor-confined. Deterministic.
class ShardActor : public Actor {
 public:
  struct Options {
    // Memory kept for updates whose old values are still being sent, over all shards of the loop.
    size_t spare_bytes_max = 16 << 20;
    // How often the load is reported to the control loop.
    absl::Duration report_every = absl::Milliseconds(500);
    // What the loop's transport refused so far; joins the reported load. Null = nothing.
    std::function<uint64_t()> malformed_at_transport;
    // Bytes that may wait in this loop: gradients for their update, records for their
    // acknowledgement, old values for their reader. Beyond it pushes and pulls are refused.
    size_t queued_bytes_max = kQueuedBytesDefault;
  };

  explicit ShardActor(const Options& options);

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  const ShardCounters& counters() const { return counters_; }
  // Null when this loop is not its head, or it is not opened yet.
  const Shard* FindShard(ShardId id) const;
  // Null when this loop is not in its chain.
  const Replica* FindReplica(ShardId id) const;

 private:
  // A shard in whose chain this loop is.
  struct Place {
    std::unique_ptr<Replica> replica;
    std::unique_ptr<Shard> shard;  // null: not the head, or not opened yet
    absl::Status failure;          // why it cannot be opened
    bool needs_lease = false;      // nobody else holds it in full
  };

  void AdoptLease(absl::Time now, const proto::LeaseNotice& lease, Outbox& outbox);
  void AdoptView(absl::Time now, const Message& message, Outbox& outbox);
  void Push(absl::Time now, const Message& message, Outbox& outbox);
  void Pull(absl::Time now, const Message& message, Outbox& outbox);
  // The open shard, or why there is none for this request.
  absl::StatusOr<Shard*> Find(absl::Time now, const Message& request, ShardId id,
                              uint64_t generation);
  // FAILED_PRECONDITION: a push by a view in which another one was the head.
  absl::Status CheckSendersView(const Message& request, const Replica& replica) const;
  absl::Status CheckLease(absl::Time now, const Place& place) const;
  // The shard does nothing unasked while its lease is over.
  void FollowLease(absl::Time now, Place& place, Outbox& outbox);
  void Open(absl::Time now, ShardId id, Place& place);
  void FollowView(absl::Time now, ShardId id, Place& place, Outbox& outbox);
  // A message along a chain.
  void Replicate(absl::Time now, const Message& message, Outbox& outbox);
  void ClosePlace(absl::Time now, Place& place, Outbox& outbox);
  // To the control loop: what replicas report to the scheduler.
  void SendReports(Outbox& outbox);
  absl::Time PlaceDeadline(const Place& place) const;
  void Refuse(absl::Time now, const Message& request, const absl::Status& why, Outbox& outbox);
  absl::Status CheckBudget();
  void CountQueued();
  void Report(absl::Time now, Outbox& outbox);
  absl::Time EarliestDeadline() const;

  // Constant after construction.
  const Options options_;

  // Owned by the actor's thread.
  Address self_;
  std::shared_ptr<const ClusterView> view_ = ClusterView::Empty();
  absl::Time lease_until_ = absl::InfiniteFuture();
  SpareBuffers spares_;
  ShardCounters counters_;
  std::vector<proto::ReplicaReport> reports_;  // not sent yet
  absl::btree_map<ShardId, Place> places_;
  NeighbourRoutes neighbours_;
  absl::btree_set<ShardId> unopened_;
  // No parked answer is late, and no round is over, any earlier.
  absl::Time next_deadline_ = absl::InfiniteFuture();
  // Of all shards; counted anew now and then.
  size_t queued_bytes_ = 0;
  uint64_t requests_since_count_ = 0;
  absl::Time next_report_ = absl::InfiniteFuture();
};

}  // namespace covey::server

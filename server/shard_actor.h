#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"
#include "server/shard.h"
#include "server/table/spare_buffers.h"

namespace covey::server {

// One data loop of a server: hosts the shards that the view places on it, and answers pushes and
// pulls.
//
// It learns its own address and the view from WatchViewReply messages of the control loop, which
// come without a connection; a stranger's have one and are dropped. A shard is opened at the first
// request for it, or when the loop has nothing else to do; opening fills it from the initializer.
// It is closed, and its content lost, when the view takes it away or gives it a new generation.
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
    // For tests that show that the checkers notice.
    Sabotage sabotage = Sabotage::kNone;
  };

  explicit ShardActor(const Options& options);

  void Receive(absl::Time now, const Message& message, Outbox& outbox) override;
  void Wake(absl::Time now, Outbox& outbox) override;
  absl::Time NextWake() const override;

  const ShardCounters& counters() const { return counters_; }
  // Null when the shard is not here, or not opened yet.
  const Shard* FindShard(ShardId id) const;

 private:
  // A shard that the view places here.
  struct Place {
    uint64_t generation = 0;
    std::unique_ptr<Shard> shard;  // null: not opened yet
    absl::Status failure;          // why it cannot be opened
  };

  void AdoptView(absl::Time now, const Message& message, Outbox& outbox);
  void Push(absl::Time now, const Message& message, Outbox& outbox);
  void Pull(absl::Time now, const Message& message, Outbox& outbox);
  // The open shard, or why there is none for this request.
  absl::StatusOr<Shard*> Find(absl::Time now, const Message& request, ShardId id,
                              uint64_t generation);
  absl::Status NotHere(const Message& request, ShardId id, uint64_t generation) const;
  void Open(absl::Time now, ShardId id, Place& place);
  void Report(absl::Time now, Outbox& outbox);
  absl::Time EarliestDeadline() const;

  // Constant after construction.
  const Options options_;

  // Owned by the actor's thread.
  Address self_;
  std::shared_ptr<const ClusterView> view_ = ClusterView::Empty();
  SpareBuffers spares_;
  ShardCounters counters_;
  absl::btree_map<ShardId, Place> places_;
  absl::btree_set<ShardId> unopened_;
  // No parked answer is late, and no round is over, any earlier.
  absl::Time next_deadline_ = absl::InfiniteFuture();
  absl::Time next_report_ = absl::InfiniteFuture();
};

}  // namespace covey::server

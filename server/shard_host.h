// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "common/base/buffer_pool.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "proto/scheduler.pb.h"
#include "server/key_lists/key_lists.h"
#include "server/replication/held_records.h"
#include "server/replication/load_source.h"
#include "server/replication/record_observer.h"
#include "server/replication/replica.h"
#include "server/replication/shard_counters.h"
#include "server/shard/queue_budget.h"
#include "server/shard/shard.h"
#include "server/table/table_budget.h"
#include "server/table/table_memory.h"

namespace covey::server {

// One shard on one server: its replica and, where this server is the head of the shard's chain, the
// open shard that serves clients.
//
//               chain: head              Open                   lease expired
//   replica ───────────────▶ unopened ─────────▶ serving ──────────────────────▶ suspended
//      ▲                        │  │                │ ▲                              │ │
//      │                        │  └▶ failed        │ └──────── lease renewed ───────┘ │
//      └── chain: not the head ─┴───────────────────┴──────────────────────────────────┘
//
// Every call that may change the shard ends in Settle: it sends the replies that have become
// durable, reviews the acknowledgements that were given early, and returns the work that is left to
// the loop. The result is [[nodiscard]], so no caller can forget it.
//
// The lease: while no second replica has joined, only the clock shows that another server may have
// re-initialized the shard. So once the lease has expired, requests are refused, parked ones
// included, and no due update is applied until the lease is renewed. Where a second replica has
// joined, nothing is durable without it, and the lease does not matter.
//
// Actor-confined. Deterministic.
class ShardHost {
 public:
  // Shared by the hosts of one loop; outlives them.
  struct Environment {
    TableMemory& memory;
    BufferPool& spares;
    ShardCounters& counters;
    QueueBudget& budget;
    KeyLists& key_lists;
    RecordObserver* observer = nullptr;  // null = none
    HeldRecords* held = nullptr;         // the same
    TableBudget* tables = nullptr;       // the same
  };

  // The work that a call leaves to the loop.
  struct [[nodiscard]] Settled {
    absl::Time next_wake = absl::InfiniteFuture();
    // Open should be called when the loop has nothing else to do.
    bool needs_open = false;
    // Reports for the scheduler.
    std::vector<proto::ReplicaReport> reports;
    // Content to be stored; and why there is none for the snapshot that the view orders.
    std::vector<Replica::TakenCut> cuts;
    std::optional<std::string> cut_failure;
    // From where in the store the shard is to be loaded.
    std::optional<LoadSource> load_from;
  };

  ShardHost(ShardId id, uint64_t generation, absl::Time lease_until,
            const Environment& environment);
  ~ShardHost();
  ShardHost(const ShardHost&) = delete;
  ShardHost& operator=(const ShardHost&) = delete;

  // Precondition: in the view, `self` is in the shard's chain, and the generation is the same.
  Settled SetView(absl::Time now, std::shared_ptr<const ClusterView> view, const Address& self,
                  Outbox& outbox);
  Settled SetLease(absl::Time now, absl::Time until, Outbox& outbox);
  Settled Wake(absl::Time now, Outbox& outbox);
  // The view has taken the shard away: refuses all waiting requests.
  Settled Close(absl::Time now, const ClusterView& view, Outbox& outbox);

  // Whether a push or a pull may be served. Precondition: this server is the head.
  // FAILED_PRECONDITION: a push from a view in which another server was the head. UNAVAILABLE: the
  // lease has expired. And as CheckInitialization.
  absl::Status CheckRequest(absl::Time now, const Message& request) const;
  // How long after a failure for want of memory the next request tries to open the shard again:
  // another shard may be gone by then.
  static constexpr absl::Duration kReopenAfter = absl::Seconds(1);

  // Fills the replica and opens the shard, unless that is done. If it is impossible, failure() says
  // why.
  Settled Open(absl::Time now, Outbox& outbox);
  // As Replica::Load.
  Settled Load(absl::Time now, const absl::StatusOr<Message>& piece, Outbox& outbox);
  // Precondition: CheckRequest and failure() are OK, and needs_open() is false.
  Settled Push(absl::Time now, const Message& request, Outbox& outbox);
  Settled Pull(absl::Time now, const Message& request, Outbox& outbox);
  // Precondition: a ReplicateRequest, ReplicateReply or ReplicaPiece of this shard and generation.
  Settled OnChainMessage(absl::Time now, const Message& message, Outbox& outbox);

  // Of a push or a pull: what there has to be room for.
  QueueBudget::Request RoomFor(const Message& request) const;
  bool is_head() const { return replica_.is_head(); }
  bool needs_open() const;
  // A request has come: forgets a failure after kReopenAfter.
  void Reconsider(absl::Time now);
  // Why the shard is not open: it cannot be, or it is still being loaded (UNAVAILABLE).
  absl::Status failure() const;
  const Replica& replica() const { return replica_; }
  // Null: this server is not the head, or the shard is not open.
  const Shard* shard() const { return shard_.get(); }
  // The shard's part of the load of its loop, besides the loop's counters.
  proto::ServerLoad Load() const;

 private:
  Settled Settle(absl::Time now, Outbox& outbox);
  absl::Time NextWake() const;
  // Bytes of what waits here: gradients, readers, unacknowledged records and old values.
  QueueBudget::Waiting waiting() const;
  void ReportWaiting(const QueueBudget::Waiting& waiting);
  absl::Status CheckSendersView(const Message& request) const;
  absl::Status CheckLease(absl::Time now) const;
  // Suspends or resumes the shard.
  void ApplyLease(absl::Time now, Outbox& outbox);
  void CloseShard(absl::Time now, const ClusterView& view, Outbox& outbox);

  // Constant after construction.
  const ShardId id_;
  const Environment environment_;

  // Owned by the actor's thread.
  std::shared_ptr<const ClusterView> view_;
  Address self_;
  Replica replica_;
  std::unique_ptr<Shard> shard_;
  absl::Status failure_;  // why the shard cannot be opened
  absl::Time failed_at_ = absl::InfinitePast();
  bool has_logged_failure_ = false;  // since the view changed
  bool needs_lease_ = false;
  absl::Time lease_until_;
  QueueBudget::Waiting reported_;  // to the budget
};

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/base/buffer_pool.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"
#include "server/key_lists/key_lists.h"
#include "server/key_lists/request_keys.h"
#include "server/replication/replica.h"
#include "server/replication/shard_counters.h"
#include "server/replication/table_rules.h"
#include "server/shard/cut_alignment.h"
#include "server/shard/initial_values.h"
#include "server/shard/push_pipeline.h"
#include "server/shard/queue_budget.h"
#include "server/shard/served_shard.h"
#include "server/shard/shard_replies.h"

namespace covey::server {

// Serves a shard at the head of its chain: PushPipeline makes updates of pushes, and ShardReplies
// replies to them and to pulls. This class decides when: at each request, when a view or a contract
// changes, when the lease expires and returns, and when a deadline passes.
//
// The content is the replica's. Everything in this class is lost with the head, and the next head
// makes it again around its own content: readers ask again, clients repeat pushes that were not
// durable, and the gate continues from the clock vector.
//
// Not promised: replies and records between a call and the Settle that must follow it. ShardHost
// ends every call with Settle.
//
// Actor-confined. Deterministic: the values depend on the table's definition and the order of
// pushes and flushes only; under bsp not even on that, nor on how the table is cut into shards.
class Shard {
 public:
  // What the shards of one loop share; outlives them.
  struct Environment {
    BufferPool& spares;
    ShardCounters& counters;
    const QueueBudget& budget;
    KeyLists& key_lists;
  };

  // Around the content of the replica, which outlives it. Precondition: `view` holds the shard, and
  // the replica has content.
  // INVALID_ARGUMENT: this server cannot serve the table's definition; says why.
  static absl::StatusOr<std::unique_ptr<Shard>> Open(ShardId id,
                                                     std::shared_ptr<const ClusterView> view,
                                                     Replica& replica,
                                                     const Environment& environment);

  Shard(const Shard&) = delete;

  // Replies to a PushRequest or PullRequest for this shard and generation, at once or later. A push
  // that is flushed and held in a buffer is applied now, with all others in the buffer. A push that
  // gives initial values has passed CheckInitialization.
  void Push(absl::Time now, const Message& request, Outbox& outbox);
  void Pull(absl::Time now, const Message& request, Outbox& outbox);

  // The live groups and nodes and the contract in force decide what waits. Under another contract
  // values, optimizer state, clocks and received pushes stay, pushes that waited are applied, and
  // the new contract binds waiting readers. Precondition: `view` holds the shard.
  void SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox);

  // Does what is due: applies updates, makes the cut that the view orders, and replies to readers
  // for which the shard is fresh enough. To be called once after Open; other calls include it.
  void Proceed(absl::Time now, Outbox& outbox);

  // Another server may hold the shard by now. Suspend refuses parked readers with `why`; until
  // Resume nothing is applied or replied to, and Resume does what has become due meanwhile. Both
  // may be called again. Precondition: no request comes meanwhile.
  void Suspend(const absl::Status& why, Outbox& outbox);
  void Resume(absl::Time now, Outbox& outbox);

  // Ends every call: sends the replies that have become durable, refuses those that are late, and
  // looks at the acknowledgements that were given early.
  void Settle(absl::Time now, Outbox& outbox);

  // Refuses everything that still waits.
  void Close(absl::Time now, const absl::Status& why, Outbox& outbox);

  void Wake(absl::Time now, Outbox& outbox);
  // When a parked reply is late, or a round no longer waits for late groups.
  absl::Time NextWake() const;

  bool suspended() const { return suspended_; }
  uint64_t generation() const { return shard_.replica.generation(); }
  Version version() const { return content().version(); }
  uint64_t samples() const { return content().samples(); }
  Buffer Values() const { return content().Values(); }
  uint64_t bytes() const { return content().value_bytes(); }
  size_t parked() const { return replies_.parked(); }
  // Bytes; the others are those of unacknowledged records and old values.
  QueueBudget::Waiting waiting() const;
  // Whether what waits in any shard may wait for this push or pull: its sender pushes its next step
  // only after it. Precondition: the request is one of them.
  bool IsAwaited(const Message& request) const;
  // How stale its pushes are, and how it corrects for that.
  proto::TableAsynchrony ReportAsynchrony() const;
  // Nothing for a dense table.
  std::optional<proto::TableRows> ReportRows() const;
  // The producers with pushes beyond the table's gate.
  std::vector<proto::GatedProducer> ReportGated() const;
  // Why the shard makes no cut for the snapshot that the view orders; once.
  std::optional<std::string> TakeCutFailure() { return alignment_.TakeFailure(); }

 private:
  Shard(ShardId id, std::shared_ptr<const ClusterView> view, Replica& replica,
        const Environment& environment, const TableRules& rules);

  const ShardContent& content() const { return shard_.content(); }
  const Contract& contract() const { return pipeline_.contract(); }
  void FollowContract();
  // The view's order of a snapshot.
  void FollowOrder();
  void TakeInitialValues(absl::Time now, const Message& request, PendingReply pending,
                         Outbox& outbox);
  // Of a sparse table, the rows that a request asks for.
  absl::Status FindWanted(RequestKeys& keys, PendingReply& pending);
  // Of a table of vectors, the queries that a request asks.
  absl::Status TakeQueries(const proto::PullRequest& pull, PendingReply& pending) const;
  // Whether the push has been received; it may be applied or wait.
  bool IsReceived(GroupId group, Step step) const;
  // Makes the cut that the view orders.
  void Cut(absl::Time now, Outbox& outbox);
  // True when the shard has a new version.
  bool ApplyDue(absl::Time now, Outbox& outbox);

  // Owned by the actor's thread.
  ServedShard shard_;
  PushPipeline pipeline_;
  ShardReplies replies_;
  CutAlignment alignment_;
  InitialValues initial_values_;
  bool suspended_ = false;
};

}  // namespace covey::server

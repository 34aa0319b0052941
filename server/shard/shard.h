// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/cluster/view.h"
#include "common/contract/read_gate.h"
#include "common/runtime/actor.h"
#include "server/replication/push_history.h"
#include "server/replication/replica.h"
#include "server/replication/shard_counters.h"
#include "server/shard/ack_ledger.h"
#include "server/shard/durability_queue.h"
#include "server/shard/gradient_aggregator.h"
#include "server/shard/parked_replies.h"
#include "server/shard/staleness_correction.h"
#include "server/table/spare_buffers.h"
#include "server/table/table_spec.h"

namespace covey::server {

// Serves a shard at the head of its chain: accepts pushes, makes updates of them, and replies. A
// push runs through
//
//   dedup ─▶ sender lives? ─▶ contract admits? ─▶ room? ─▶ decoded ─▶ NaN screen ─▶ aggregated ─▶
//   applied, and sent along the chain ─▶ durable ─▶ replied to
//
// and a stage that refuses it changes nothing. A push that is too stale for the contract is
// remembered and replied to, but not aggregated. The reply has the values when the sender asks for
// them. It is parked until the shard is as fresh as the reader demands, or its deadline passes.
//
// Every reply shows the shard as it is when the reader's demand is met, and leaves once the whole
// chain holds that state: nothing that a reader has seen is ever lost. A push that waits for a
// later update gets two replies: received, and durable. Only where this server is the whole chain,
// a push is durable at once (AckLedger).
//
// The content is the replica's. Everything in this class is lost with the head, and the next head
// makes it again around its own content: readers ask again, clients repeat pushes that were not
// durable, and the gate continues from the clock vector.
//
// Not promised: replies and records between a call and the Settle that must follow it. ShardHost
// ends every call with Settle.
//
// Actor-confined. Deterministic: the values depend on the table's definition and the order of
// pushes only; under bsp not even on that, nor on how the table is cut into shards.
class Shard {
 public:
  // What the shards of one loop share; outlives them.
  struct Environment {
    SpareBuffers& spares;
    ShardCounters& counters;
  };

  // Around the content of the replica, which outlives it. Precondition: `view` holds the shard, and
  // the replica has content.
  // INVALID_ARGUMENT: this server cannot serve the table's definition; says why.
  static absl::StatusOr<std::unique_ptr<Shard>> Open(ShardId id,
                                                     std::shared_ptr<const ClusterView> view,
                                                     Replica& replica,
                                                     const Environment& environment);

  // Replies to a PushRequest or PullRequest for this shard and generation, at once or later.
  void Push(absl::Time now, const Message& request, Outbox& outbox);
  void Pull(absl::Time now, const Message& request, Outbox& outbox);

  // The live groups and nodes and the contract in force decide what waits. Under another contract
  // values, optimizer state, clocks and received pushes stay, pushes that waited are applied, and
  // the new contract binds waiting readers. Precondition: `view` holds the shard.
  void SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox);

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
  uint64_t generation() const { return replica_.generation(); }
  Version version() const { return content().version(); }
  uint64_t samples() const { return content().samples(); }
  Buffer Values() const { return content().Values(); }
  uint64_t bytes() const { return content().value_bytes(); }
  size_t parked() const { return parked_.size(); }
  // Of gradients, unacknowledged records and old values that wait here.
  size_t queued_bytes() const;
  // How stale its pushes are, and how it corrects for that.
  proto::TableAsynchrony ReportAsynchrony() const;

 private:
  Shard(ShardId id, std::shared_ptr<const ClusterView> view, Replica& replica,
        const Environment& environment, const TableRules& rules);

  const ShardContent& content() const { return *replica_.content(); }
  // Adds the push to the next update, or says why not. True when it had been received before.
  absl::StatusOr<bool> Accept(absl::Time now, const Message& request, const PushKey& key,
                              Outbox& outbox);
  // Whether the push was received before; it may be applied or wait.
  absl::StatusOr<bool> IsKnown(const PushKey& key) const;
  absl::Status CheckRoom(const Producer& producer) const;
  Buffer Decoded(proto::WireFormat format, const Buffer& frame);
  absl::Status Screen(const Buffer& gradient, const proto::PushRequest& push);
  void Discard(absl::Time now, const ReceivedPush& push, Outbox& outbox);
  void FollowContract();
  // Applies the updates that are due and replies to readers for which the shard is fresh enough.
  void Proceed(absl::Time now, Outbox& outbox);
  // True when the shard has a new version.
  bool ApplyDue(absl::Time now, Outbox& outbox);
  void Apply(absl::Time now, AggregatedUpdate& update, Outbox& outbox);
  // Names the producers that must be forgotten to make room for those in the record.
  void MakeRoom(ShardRecord& record) const;
  // Queues the second replies to pushes that have become part of the newest record.
  void QueueDurableAcks(absl::Time now, const AggregatedUpdate& update);
  uint64_t durable() const;
  void ReleaseParked(absl::Time now, Outbox& outbox);

  // Completes the reply, or parks it until the shard is fresh enough.
  void ReplyWhenFresh(absl::Time now, PendingReply pending, Outbox& outbox);
  // Completes the reply; it leaves as soon as what it shows is durable.
  void ReplyWhenDurable(absl::Time now, PendingReply& pending, Outbox& outbox);
  void SendNow(absl::Time now, UndurableReply complete, Outbox& outbox);
  // Remembers the values in the reply as those that its reader computes on.
  void RecordSent(const PendingReply& pending);
  void Refuse(Message& reply, const absl::Status& why, Outbox& outbox) const;
  const Contract& contract() const { return aggregator_.gate().contract(); }
  bool IsFreshEnough(absl::Time now, const ReadRequirement& requirement) const;
  Freshness FreshnessAt(absl::Time now) const;
  void Describe(proto::ShardState& state) const;
  // "table=weights shard=3", for errors.
  std::string Where() const;

  // Constant after construction.
  const ShardId id_;
  const std::string table_name_;
  const bool refuses_non_finite_;
  const Environment environment_;

  // Owned by the actor's thread.
  std::shared_ptr<const ClusterView> view_;
  Replica& replica_;
  AckLedger ledger_;
  GradientAggregator aggregator_;
  StalenessCorrection correction_;
  ParkedReplies parked_;
  DurabilityQueue undurable_;
  std::vector<LiveGroup> waited_for_;  // of view_, as the contract counts
  bool suspended_ = false;
};

}  // namespace covey::server

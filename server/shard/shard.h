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
#include "server/replication/producers.h"
#include "server/replication/replica.h"
#include "server/replication/shard_counters.h"
#include "server/shard/asynchrony.h"
#include "server/shard/held_pushes.h"
#include "server/shard/parked_answers.h"
#include "server/shard/push_gathering.h"
#include "server/shard/undurable_answers.h"
#include "server/table/spare_buffers.h"
#include "server/table/table_spec.h"

namespace covey::server {

// What the head of a shard's chain does: takes pushes in, makes updates of them, and answers. A push
// runs through
//
//   dedup ─▶ sender lives? ─▶ contract admits? ─▶ room? ─▶ decoded ─▶ NaN screen ─▶ gathered ─▶
//   applied, and sent along the chain ─▶ durable ─▶ answered
//
// and nothing changes when a stage refuses it. One that is too stale for the contract is remembered
// and answered, but not gathered. Its answer has the values when asked for, once the
// shard is as fresh as the reader demands; until then, or its deadline, it is parked.
//
// Every answer shows the shard as it is when the reader's demand is met, and leaves once the whole
// chain holds that: what anybody has seen is never lost. A push that is held for a later update is
// answered as received, not durable, and once more when it is. Only where the chain is this server
// alone, everything is durable at once; a successor that comes counts as joined when all that was
// promised so is in its records.
//
// The content is the replica's; what is here is lost with the primary, and made anew around the
// content of the next one: whoever waits asks again, whoever pushed what was not durable pushes it
// again, and the gate goes on from the clock vector.
//
// Actor-confined. Deterministic: the values depend on the table's definition and the order of
// pushes only; under bsp not even on that, nor on how the table is cut into shards.
class Shard {
 public:
  // What it shares with the other shards of its loop; outlives it.
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

  // Answers a PushRequest or PullRequest for this shard and generation, at once or later.
  void Push(absl::Time now, const Message& request, Outbox& outbox);
  void Pull(absl::Time now, const Message& request, Outbox& outbox);

  // Which groups and nodes live, and the contract in force, decide what waits. Under another
  // contract values, optimizer state, clocks and what was received stay, what was held is applied,
  // and waiting readers are bound by the new one. Precondition: `view` holds the shard.
  void SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox);

  // Others may hold the shard by now: refuses whoever is parked with `why`, and until Resume
  // nothing is applied or answered; what is due meanwhile happens then. Both may be called again.
  // Precondition: no request comes meanwhile.
  void Suspend(const absl::Status& why, Outbox& outbox);
  void Resume(absl::Time now, Outbox& outbox);

  // Ends every call: answers what has become durable and refuses what has waited past its deadline.
  void Settle(absl::Time now, Outbox& outbox);

  // Answers, with the reason, whatever still waits.
  void Close(absl::Time now, const absl::Status& why, Outbox& outbox);

  void Wake(absl::Time now, Outbox& outbox);
  // When a wait ends, of a parked answer or of a round for late groups.
  absl::Time NextWake() const;

  bool suspended() const { return suspended_; }
  uint64_t generation() const { return replica_.generation(); }
  Version version() const { return content().version(); }
  uint64_t samples() const { return content().samples(); }
  Buffer Values() const { return content().Values(); }
  // Of its values.
  uint64_t bytes() const { return content().value_bytes(); }
  size_t parked() const { return parked_.size(); }
  // What waits here: gradients, records that are not acknowledged, old values.
  size_t queued_bytes() const;
  // How late its pushes are, and what it does about it.
  proto::TableAsynchrony ReportAsynchrony() const;

 private:
  Shard(ShardId id, std::shared_ptr<const ClusterView> view, Replica& replica,
        const Environment& environment, const TableRules& rules);

  const ShardContent& content() const { return *replica_.content(); }
  // Takes the push in, or says why not. True when it had been received before.
  absl::StatusOr<bool> TakeIn(absl::Time now, const Message& request, const PushKey& key,
                              Outbox& outbox);
  // A version of the push that is known already, whether applied or held.
  absl::StatusOr<bool> IsKnown(const PushKey& key) const;
  absl::Status CheckRoom(const Producer& producer) const;
  Buffer Decoded(proto::WireFormat format, const Buffer& frame);
  absl::Status Screen(const Buffer& gradient, const proto::PushRequest& push);
  void Discard(absl::Time now, const GatheredPush& push, Outbox& outbox);
  void FollowContract();
  // Applies and answers what may be by now.
  void Proceed(absl::Time now, Outbox& outbox);
  // True when the shard has a new version.
  bool ApplyDue(absl::Time now, Outbox& outbox);
  void Apply(absl::Time now, GatheredUpdate& update, Outbox& outbox);
  // Names the producers that must be forgotten to make room for those in the record.
  void MakeRoom(ShardRecord& record) const;
  // Lets the replica know whether all that was promised is in records.
  void ReviewPromises(absl::Time now, Outbox& outbox);
  // Answers that are owed to those whose pushes became part of the newest record.
  void SendReceipts(absl::Time now, const GatheredUpdate& update);
  uint64_t durable() const;
  void ReleaseParked(absl::Time now, Outbox& outbox);

  // Sends the answer, or parks it until the shard is fresh enough.
  void Answer(absl::Time now, PendingAnswer answer, Outbox& outbox);
  // Sends it as soon as what it shows is durable.
  void Send(absl::Time now, PendingAnswer& answer, Outbox& outbox);
  void Post(absl::Time now, UndurableAnswer answer, Outbox& outbox);
  // Remembers the values that the answer carries as those of its reader.
  void NoteSent(const PendingAnswer& answer);
  void Fail(Message& reply, const absl::Status& why, Outbox& outbox) const;
  const Contract& contract() const { return gathering_.gate().contract(); }
  bool MayAnswer(absl::Time now, const ReadRequirement& requirement) const;
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
  HeldPushes held_;
  PushGathering gathering_;
  Asynchrony asynchrony_;
  ParkedAnswers parked_;
  UndurableAnswers undurable_;
  // When arrivals that were promised to be durable wait no longer for more.
  absl::Time promises_due_ = absl::InfiniteFuture();
  std::vector<LiveGroup> waited_for_;  // of view_, as the contract counts
  bool suspended_ = false;
};

}  // namespace covey::server

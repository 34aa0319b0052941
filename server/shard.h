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
#include "common/cluster/read_gate.h"
#include "common/cluster/view.h"
#include "common/runtime/actor.h"
#include "server/asynchrony.h"
#include "server/parked_answers.h"
#include "server/producers.h"
#include "server/push_gathering.h"
#include "server/table/dense_shard.h"
#include "server/table/spare_buffers.h"
#include "server/table_spec.h"

namespace covey::server {

// Faults that a test plants to see that its checkers notice. No flag reaches them.
enum class Sabotage {
  kNone,
  // Duplicates are applied again.
  kNoDedup,
  // Readers get their answer at once, however stale.
  kNoStalenessGate,
};

// What a data loop did since its start.
struct ShardCounters {
  uint64_t pushes = 0;  // received and new
  uint64_t pulls = 0;
  uint64_t duplicates = 0;
  uint64_t malformed = 0;   // requests that no honest peer sends
  uint64_t non_finite = 0;  // pushes refused for NaN or infinity
  uint64_t discarded = 0;   // pushes received and not applied, because the contract cuts such age

  friend bool operator==(const ShardCounters&, const ShardCounters&) = default;
};

// One shard and all that belongs to it: values, what it has received from whom, pushes not yet
// applied, the clock vector, readers that wait. A push runs through
//
//   dedup ─▶ sender lives? ─▶ contract admits? ─▶ decoded ─▶ NaN screen ─▶ gathered ─▶ applied ─▶
//   answered
//
// and nothing changes when a stage refuses it. One that is too stale for the contract is remembered
// and answered, but not gathered. Its answer has the values when asked for, once the
// shard is as fresh as the reader demands; until then, or its deadline, it is parked.
//
// Actor-confined. Deterministic: the values depend on the table's definition and the order of
// pushes only; under bsp not even on that, nor on how the table is cut into shards.
class Shard {
 public:
  // What it shares with the other shards of its loop; outlives it.
  struct Environment {
    SpareBuffers& spares;
    ShardCounters& counters;
    Sabotage sabotage = Sabotage::kNone;
  };

  // Fills the values from the initializer. Precondition: `view` holds the shard.
  // INVALID_ARGUMENT: this server cannot serve the table's definition; says why.
  static absl::StatusOr<std::unique_ptr<Shard>> Open(absl::Time now, ShardId id,
                                                     std::shared_ptr<const ClusterView> view,
                                                     const Environment& environment);

  // Answers a PushRequest or PullRequest for this shard and generation, at once or later.
  void Push(absl::Time now, const Message& request, Outbox& outbox);
  void Pull(absl::Time now, const Message& request, Outbox& outbox);

  // Which groups and nodes live, and the contract in force, decide what waits. Under another
  // contract values, optimizer state, clocks and what was received stay, what was held is applied,
  // and waiting readers are bound by the new one. Precondition: `view` holds the shard.
  void SetView(absl::Time now, std::shared_ptr<const ClusterView> view, Outbox& outbox);

  // Answers, with the reason, whatever is still parked.
  void Close(const absl::Status& why, Outbox& outbox);

  void Wake(absl::Time now, Outbox& outbox);
  // When a wait ends, of a parked answer or of a round for late groups.
  absl::Time NextWake() const;

  uint64_t generation() const { return generation_; }
  Version version() const { return Version(table_->version()); }
  uint64_t samples() const { return table_->samples(); }
  Buffer Values() const { return table_->Values(); }
  // Of its values.
  uint64_t bytes() const { return table_->element_count() * sizeof(float); }
  size_t parked() const { return parked_.size(); }
  // How late its pushes are, and what it does about it.
  proto::TableAsynchrony ReportAsynchrony() const;

 private:
  Shard(absl::Time now, ShardId id, std::shared_ptr<const ClusterView> view,
        const Environment& environment, const TableRules& rules, std::unique_ptr<DenseShard> table);

  // Takes the push in, or says why not. True when it had been received before.
  absl::StatusOr<bool> TakeIn(const Message& request, const PushKey& key);
  Buffer Decoded(proto::WireFormat format, const Buffer& frame);
  absl::Status Screen(const Buffer& gradient, const proto::PushRequest& push);
  void Discard(const GatheredPush& push);
  void FollowContract();
  // True when the shard has a new version.
  bool ApplyDue(absl::Time now);
  void ReleaseParked(absl::Time now, Outbox& outbox);

  // Sends the answer, or parks it until the shard is fresh enough.
  void Answer(absl::Time now, PendingAnswer answer, Outbox& outbox);
  void Send(absl::Time now, PendingAnswer& answer, Outbox& outbox);
  // Remembers the values that the answer carries as those of its reader.
  void NoteSent(const PendingAnswer& answer);
  void Fail(PendingAnswer& answer, const absl::Status& why, Outbox& outbox) const;
  const Contract& contract() const { return gathering_.gate().contract(); }
  bool MayAnswer(absl::Time now, const ReadRequirement& requirement) const;
  Freshness FreshnessAt(absl::Time now) const;
  void Describe(absl::Time now, proto::ShardState& state) const;
  // "table=weights shard=3", for errors.
  std::string Where() const;

  // Constant after construction.
  const ShardId id_;
  const std::string table_name_;
  const uint64_t generation_;
  const bool refuses_non_finite_;
  const Environment environment_;

  // Owned by the actor's thread.
  std::shared_ptr<const ClusterView> view_;
  const std::unique_ptr<DenseShard> table_;
  Producers producers_;
  PushGathering gathering_;
  Asynchrony asynchrony_;
  uint64_t discarded_ = 0;  // pushes that were too stale for the contract
  ClockVector clocks_;
  ParkedAnswers parked_;
  std::vector<LiveGroup> waited_for_;  // of view_, as the contract counts
  absl::Time last_update_;
};

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/container/btree_map.h"
#include "absl/container/btree_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/buffer.h"
#include "common/contract/contract.h"
#include "common/net/message.h"
#include "common/runtime/actor.h"
#include "common/vectors/vector_function.h"
#include "server/key_lists/request_keys.h"
#include "server/replication/push_history.h"
#include "server/replication/shard_record.h"
#include "server/replication/table_rules.h"
#include "server/shard/gradient_aggregator.h"
#include "server/shard/norm_gate.h"
#include "server/shard/served_shard.h"

namespace covey::server {

// Makes updates of pushes. A push runs through
//
//   dedup ─▶ sender lives? ─▶ contract admits? ─▶ room? ─▶ decoded ─▶ NaN screen ─▶ norm gate ─▶
//   aggregated ─▶ applied, and sent along the chain
//
// and a stage that refuses it changes nothing. A push that is too stale for the contract is
// remembered, but not aggregated. Pushes without samples are applied like others, which changes no
// value and makes no version; a push that the gate keeps out goes on as one of these. Functions are
// an update of their own, on arrival: their checks take the place of what comes after "room?".
// Actor-confined. Deterministic.
class PushPipeline {
 public:
  // A worker that has left its group repeats what it pushed as a member for less long.
  static constexpr absl::Duration kForgetGroupAfter = absl::Minutes(10);
  // A head accepts no push of a client that has gone. It remembers the client's pushes only to
  // answer one that was declared dead and still queries them. The duration is short because each
  // new head of a shard counts it from its own first view.
  static constexpr absl::Duration kForgetClientAfter = absl::Seconds(30);
  // How long a new head waits for the step of a group that only the former head had received, and
  // that the member which pushed it repeats. Longer than a view takes to reach all members.
  static constexpr absl::Duration kEarlierStepWait = absl::Seconds(1);

  // `shard` outlives it.
  PushPipeline(ServedShard& shard, const TableRules& rules)
      : shard_(shard),
        refuses_non_finite_(rules.refuses_non_finite),
        norm_gate_(rules.norm_gate),
        aggregator_(rules.contract, shard.spares, shard.content().shape().row_width,
                    rules.round_mean) {}

  // Adds the push to the next update, or says why not. True when it had been received before.
  // `keys` are those of the request.
  absl::StatusOr<bool> Accept(absl::Time now, const Message& request, const PushKey& key,
                              RequestKeys& keys, Outbox& outbox);
  // Applies the next update, if one is due, and returns it. To be called until there is none.
  std::optional<AggregatedUpdate> ApplyNext(absl::Time now, Outbox& outbox);

  // Makes all replicas forget the pushes of producers that have been gone from the view for
  // kForgetGroupAfter or kForgetClientAfter, or at all where there is no room for others. No push
  // of them is accepted any more, and none is asked for so late. What waits to be applied keeps its
  // producer for a later call. To be called with each view.
  void ForgetGone(absl::Time now, Outbox& outbox);

  // As GradientAggregator.
  void KeepHeld() { aggregator_.KeepHeld(); }
  void Resume(GroupId group, Step step) {
    aggregator_.Resume(group, step);
    taken_over_.insert(group);
  }
  void SwitchTo(const Contract& contract) { aggregator_.SwitchTo(contract); }
  void FlushPartialBuffer() { aggregator_.FlushPartialBuffer(); }
  void HoldBeyond(absl::btree_map<GroupId, Step> last) { aggregator_.HoldBeyond(std::move(last)); }
  void HurryHeld() { aggregator_.HurryHeld(); }
  void Release() { aggregator_.Release(); }
  size_t held_bytes() const { return aggregator_.held_bytes(); }

  const NormGate& norm_gate() const { return norm_gate_; }
  // Says what waits.
  const UpdateGate& gate() const { return aggregator_.gate(); }
  const Contract& contract() const { return gate().contract(); }

 private:
  // Whether the push was received before; it may be applied or wait.
  absl::StatusOr<bool> IsKnown(const PushKey& key) const;
  // INVALID_ARGUMENT: the step is too far beyond the group's last one to be its next.
  absl::Status CheckJump(GroupId group, Step step);
  // UNAVAILABLE: the former head may have received an earlier step of the group, which another
  // member will repeat. If this one came first, the clock would pass the gap.
  absl::Status CheckEarlierSteps(absl::Time now, GroupId group, Step step);
  // Forgets producers that are gone where there is no room for this one.
  absl::Status MakeRoom(absl::Time now, const Producer& producer, Outbox& outbox);
  // Whether the shard knows as many producers as it can.
  bool IsFull() const;
  bool HasRoomFor(const Producer& producer) const;
  struct Taken {
    GradientBuffers gradient;
    EncodedGradient encoded;
  };
  // The gradient of a push, checked and decoded.
  absl::StatusOr<Taken> TakeGradient(const Message& request, RequestKeys& keys);
  absl::Status Screen(const Gradient& gradient, const proto::PushRequest& push);
  // A push that the gate keeps out goes on without samples.
  void PassGate(const Gradient& gradient, ReceivedPush& push);
  void Discard(absl::Time now, const ReceivedPush& push, Outbox& outbox);
  // The functions of a push, checked.
  absl::StatusOr<std::vector<VectorFunction>> TakeFunctions(const proto::PushRequest& push) const;
  void ApplyFunctions(absl::Time now, const PushKey& key, std::vector<VectorFunction> functions,
                      Outbox& outbox);
  void Apply(absl::Time now, AggregatedUpdate& update, Outbox& outbox);

  // Constant after construction.
  ServedShard& shard_;
  const bool refuses_non_finite_;
  const NormGate norm_gate_;

  // Owned by the actor's thread.
  GradientAggregator aggregator_;
  absl::btree_map<Producer, absl::Time> gone_since_;  // those in the history that are gone
  absl::btree_set<GroupId> taken_over_;               // the groups that had pushed to a former head
  std::optional<absl::Time> first_push_;              // of a group, to this head
};

}  // namespace covey::server

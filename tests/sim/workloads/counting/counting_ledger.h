// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "common/tensor/wire_format.h"
#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"
#include "tests/sim/workloads/counting/counting_plan.h"

namespace covey::sim {

// The fate of each counting push. Every push owns one element of each shard, its slot, and adds 1
// there, so any copy of a shard shows which pushes it contains, and how often.
//
// Invariants, in every reply with values, within one history of a shard, whichever server sends it:
//  - no slot is above 1 (applied twice) or other than 0 or 1 (applied in part);
//  - a push is in exactly the versions from the one on at which a server has reported it as
//    applied, and every nonzero slot belongs to a push;
//  - the version counts the updates, of `arrivals` pushes each. When a client flushes, or replicas
//    join a head that was alone, the head applies its partial buffer: an update of fewer pushes has
//    more of each;
//  - the shard has counted as many samples as pushes, which have one each. (Twice a half is one, so
//    values alone do not show that a push was applied twice.) Functions have none.
// And of a table with momentum (counting_momentum.h):
//  - each value says the same of when its push was applied, in all versions.
// And of a table with a norm gate:
//  - no push but a wild one is kept out, and none that is kept out is in any version;
//  - no wild push is applied once some producer that lives has had as many ordinary ones applied,
//    in earlier versions of that history, as make its usual norm known.
class CountingLedger : public Observer {
 public:
  // `slots`: elements of a shard, or of the home row of a sparse one, or bits of its vectors.
  CountingLedger(Violations& violations, uint64_t arrivals, uint64_t slots)
      : violations_(violations), arrivals_(arrivals), slots_(slots) {}

  void OnSend(absl::Time now, const Message& message) override;

  // Some server has reported that it received the push of `slot`, or that it is `durable`, in any
  // history.
  bool WasAcknowledged(ShardId shard, uint64_t slot, bool durable) const;
  // The version at which the push was applied; 0 = no server has said so.
  uint64_t AppliedVersion(const ShardHistory& history, uint64_t slot) const;
  // Rows of a sparse table are made late: the home rows do not show all pushes, and replies are not
  // compared with them.
  void ExpectLateRows() { rows_are_late_ = true; }
  // The table has a gate, and some pushes are wild.
  void ExpectGate() { is_gated_ = true; }
  // The table's optimizer has momentum.
  void ExpectMomentum() { has_momentum_ = true; }
  // How rows travel in replies.
  void ExpectRowsOf(WireFormat type) { row_type_ = type; }
  // Whether a push that was applied exactly once can result in this value.
  bool IsOnce(ShardId shard, float value) const;
  // Some shard has begun a new history.
  bool HistoryWasLost() const { return history_was_lost_; }
  // The client of this push was told that all its pushes are durable.
  void Flushed(uint64_t slot) { flushed_.insert(slot); }
  // `values` of the shard as a user read them at the very end, when no push below `slots_end` is in
  // flight or buffered.
  void CheckFinal(const ShardHistory& history, std::span<const float> values, uint64_t slots_end);

 private:
  struct Push {
    bool durable = false;
    // The version at which it was applied; 0 = unknown.
    uint64_t applied = 0;
    bool kept_out = false;
  };
  // By slot: the acknowledgments of servers.
  using History = std::map<uint64_t, Push>;
  // Shard, producer, its incarnation, sequence.
  using PushKey = std::tuple<ShardId, uint64_t, uint64_t, uint64_t>;

  void NoteView(const proto::ClusterView& view);
  void NotePush(const Message& message);
  void NoteAnswer(const ShardReply& reply);
  void NoteVerdict(const ShardReply& reply, uint64_t slot);
  void CheckValues(const ShardReply& reply);
  bool IsWild(uint64_t slot) const { return is_gated_ && IsWildSlot(slot); }
  // The value of the slot, as if its push were not wild, and without momentum.
  float TamedOf(uint64_t slot, float value) const;
  // Compares the value with what earlier ones have said of when its push was applied.
  void CheckVelocity(const ShardReply& reply, uint64_t slot);
  // The only history of the shard in which some server has received the push; nothing when there
  // are several.
  std::optional<uint64_t> OnlyGenerationOf(ShardId shard, uint64_t slot) const;
  void Complain(const ShardHistory& history, uint64_t slot, float value, absl::string_view what);

  Violations& violations_;
  const uint64_t arrivals_;
  const uint64_t slots_;
  std::map<PushKey, uint64_t> slot_of_;
  std::set<std::pair<ShardId, uint64_t>> pushed_;
  std::map<ShardHistory, History> histories_;
  std::set<uint64_t> flushed_;
  std::map<ShardId, uint64_t> generations_;  // newest published
  bool history_was_lost_ = false;
  bool rows_are_late_ = false;
  bool is_gated_ = false;
  bool has_functions_ = false;  // some push is one
  bool has_momentum_ = false;
  // The version at which values say that the push of a slot was applied.
  std::map<ShardHistory, std::map<uint64_t, uint64_t>> shown_;
  // By history and producer: the versions of its ordinary pushes.
  std::map<ShardHistory, std::map<uint64_t, std::set<uint64_t>>> ordinary_;
  std::set<uint64_t> alive_;  // nodes, by the newest view
  WireFormat row_type_ = WireFormat::kFloat32;
  // A client flushed, or a head was alone and replicas joined it.
  std::set<ShardId> hurried_;
};

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <tuple>
#include <vector>

#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/observer.h"

namespace covey::sim {

// What became of each counting push. Every push owns one element of each shard, its slot, and adds
// 1 there, so any copy of a shard shows which pushes are in it, and how often.
//
// Invariants, in every answer with values, within one history of a shard, whichever server gives
// it:
//  - no slot is above 1 (applied twice) or other than 0 or 1 (applied in part);
//  - a push is in exactly the versions from the one on at which a server has said that it was
//    applied; nothing is in that nobody pushed;
//  - the version counts the updates, `arrivals` pushes each. A primary that was alone, and gets
//    company, does not wait for so many: an update of fewer pushes has more of each.
class CountingLedger : public Observer {
 public:
  CountingLedger(Violations& violations, uint64_t arrivals)
      : violations_(violations), arrivals_(arrivals) {}

  void OnSend(absl::Time now, const Message& message) override;

  // Some server has said that it received the push of `slot`, or that it is `durable`, in whatever
  // history.
  bool WasAcknowledged(ShardId shard, uint64_t slot, bool durable) const;
  // Some shard has begun a new history.
  bool HistoryWasLost() const { return history_was_lost_; }
  // The client that pushed it has been told that all its pushes are durable, this one with them.
  void Flushed(uint64_t slot) { flushed_.insert(slot); }
  // `values` of the shard as a user got them at the very end, when no push below `slots_end` is
  // under way or held back.
  void CheckFinal(const ShardHistory& history, std::span<const float> values, uint64_t slots_end);

 private:
  struct Push {
    bool durable = false;
    // Version at which it was applied; 0 = not known.
    uint64_t applied = 0;
  };
  // By slot: what servers have acknowledged.
  using History = std::map<uint64_t, Push>;
  // Shard, producer, its incarnation, sequence.
  using PushKey = std::tuple<ShardId, uint64_t, uint64_t, uint64_t>;

  void NoteView(const proto::ClusterView& view);
  void NotePush(const Message& message);
  void NoteAnswer(const ShardReply& reply);
  void CheckValues(const ShardReply& reply);
  // The only history of the shard in which some server has received the push; nothing when there
  // are several.
  std::optional<uint64_t> OnlyGenerationOf(ShardId shard, uint64_t slot) const;
  // Whether a push that was applied exactly once can leave this behind.
  bool IsOnce(ShardId shard, float value) const;
  void Complain(const ShardHistory& history, uint64_t slot, float value, absl::string_view what);

  Violations& violations_;
  const uint64_t arrivals_;
  std::map<PushKey, uint64_t> slot_of_;
  std::set<std::pair<ShardId, uint64_t>> pushed_;
  std::map<ShardHistory, History> histories_;
  std::set<uint64_t> flushed_;
  std::map<ShardId, uint64_t> generations_;  // newest published
  bool history_was_lost_ = false;
  std::set<ShardId> hurried_;  // a primary was alone, and others joined it
};

}  // namespace covey::sim

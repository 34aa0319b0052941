#pragma once

#include <cstdint>
#include <map>
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
// Invariants, in every answer with values, within one history of a shard:
//  - no slot is above 1 (applied twice) or other than 0 or 1 (applied in part);
//  - a slot is 1 once a server has said that its push was applied; 0 when nobody pushed it;
//  - the version counts the updates, `arrivals` pushes each.
class CountingLedger : public Observer {
 public:
  CountingLedger(Violations& violations, uint64_t arrivals)
      : violations_(violations), arrivals_(arrivals) {}

  void OnSend(absl::Time now, const Message& message) override;

  // Some server has said that it received the push of `slot`, in whatever history.
  bool WasAcknowledged(ShardId shard, uint64_t slot) const;
  // `values` of the shard as a user got them at the very end, when no push below `slots_end` is
  // under way or held back.
  void CheckFinal(const ShardHistory& history, std::span<const float> values, uint64_t slots_end);

 private:
  enum class State : uint8_t { kUnknown, kReceived, kApplied };
  struct History {
    std::map<uint64_t, State> slots;
  };
  // Shard, producer, its incarnation, sequence.
  using PushKey = std::tuple<ShardId, uint64_t, uint64_t, uint64_t>;

  void NotePush(const Message& message);
  void CheckValues(const ShardReply& reply);
  void Complain(const ShardHistory& history, uint64_t slot, float value, absl::string_view what);

  Violations& violations_;
  const uint64_t arrivals_;
  std::map<PushKey, uint64_t> slot_of_;
  std::set<std::pair<ShardId, uint64_t>> pushed_;
  std::map<ShardHistory, History> histories_;
};

}  // namespace covey::sim

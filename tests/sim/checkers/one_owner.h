// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/observer.h"

namespace covey::sim {

// Invariant: one chain of a shard (its generation and chain epoch) has one primary, every view says
// so, and nobody else acknowledges a push for good under it (P5). Who answers for a history has
// been its primary. Once a view says that a shard has begun anew, whoever alone held it answers no
// more, for its lease has ended. A shard's generation and its chain's epoch never go back; a server
// is in a chain once.
class OneOwner : public Observer {
 public:
  explicit OneOwner(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;

 private:
  using Chain = std::pair<ShardHistory, uint64_t>;  // and its epoch

  void NoteView(const proto::ClusterView& view);
  void NoteShard(uint64_t epoch, ShardId id, const proto::Shard& shard);
  void CheckAnswer(const Message& message, const ShardReply& reply);

  Violations& violations_;
  uint64_t epoch_ = 0;
  std::map<ShardHistory, std::set<Address>> owners_;
  std::map<ShardId, std::pair<uint64_t, uint64_t>> newest_;  // generation and chain epoch
  std::map<Chain, std::string> chains_;
  std::map<Chain, Address> heads_;
  // The only full replica, 0 where there are more: of a chain; and of the newest one of a shard.
  std::map<Chain, uint64_t> lone_;
  std::map<ShardId, uint64_t> lone_now_;
  // Who alone held a history when the shard began anew.
  std::map<ShardHistory, uint64_t> lost_with_;
  // The chain that a loop believes in, by loop and shard.
  std::map<std::pair<Address, ShardId>, uint64_t> believed_;
};

}  // namespace covey::sim

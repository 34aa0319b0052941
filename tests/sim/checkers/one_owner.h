// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariants:
//  - one chain of a shard (its generation and chain epoch) has one head in every view, and no
//    other server acknowledges a push as durable under it;
//  - only a present or past head of a history answers for it;
//  - once a view says that a shard was re-initialized, the last server that held it alone answers
//    no more, because its lease has expired;
//  - a shard's generation and its chain's epoch never go back;
//  - a server is in a chain once.
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
  // The only joined replica, 0 where there are more: of each chain, and of the newest chain of a
  // shard.
  std::map<Chain, uint64_t> lone_;
  std::map<ShardId, uint64_t> lone_now_;
  // The node that held a history alone when the shard was re-initialized.
  std::map<ShardHistory, uint64_t> lost_with_;
  // The chain that a loop has adopted, by loop and shard.
  std::map<std::pair<Address, ShardId>, uint64_t> believed_;
};

}  // namespace covey::sim

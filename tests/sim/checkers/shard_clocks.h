// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: within one history of a shard, samples and every group's clock grow with the version,
// in replies of all servers. A reply may be held until it is durable, and so arrive behind later
// ones. For one node the state never goes back between a reply and the requests that it makes after
// that reply, whichever servers answer.
class ShardClocks : public Observer {
 public:
  explicit ShardClocks(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;

 private:
  struct State {
    uint64_t version = 0;
    uint64_t samples = 0;
    std::map<uint32_t, uint64_t> clocks;

    bool GoesBackTo(const State& other) const;
    friend bool operator==(const State&, const State&) = default;
  };
  static State StateOf(const ShardReply& reply);
  void NoteRequest(const Message& message);
  void Complain(absl::string_view who, const ShardHistory& history, const State& before,
                const State& after);

  Violations& violations_;
  std::map<ShardHistory, std::map<uint64_t, State>> said_;   // by version, the newest of each
  std::map<std::pair<ShardHistory, uint64_t>, State> told_;  // by node
  // The state that the sender of a request had seen of a history before its first attempt there, by
  // node and request id.
  std::map<std::tuple<ShardHistory, uint64_t, uint64_t>, State> known_;
};

}  // namespace covey::sim

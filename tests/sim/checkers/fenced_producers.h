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

// Invariant: a push of a dead incarnation of its producer is not accepted. Once a shard has made
// durable a push of a group's generation, it takes none of a lower one that arrives afterwards.
class FencedProducers : public Observer {
 public:
  explicit FencedProducers(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;
  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;

 private:
  struct Fence {
    uint64_t generation = 0;
    absl::Time since;
  };
  // Server, sender, request id.
  using Arrival = std::tuple<Address, uint64_t, uint64_t>;

  Violations& violations_;
  std::map<std::pair<ShardHistory, uint64_t>, Fence> fences_;  // by shard and group
  std::map<Arrival, absl::Time> arrived_;
};

}  // namespace covey::sim

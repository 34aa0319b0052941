// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: only records and pieces of a replica's own chain change its content. A message sent
// under another chain epoch than the replica's changes nothing.
class ChainFence : public Observer {
 public:
  struct Held {
    uint64_t generation = 0;
    uint64_t chain_epoch = 0;
    uint64_t index = 0;  // of the newest record
  };
  // The part of a shard that a loop of a server holds; nothing when it holds none of it.
  using Look =
      std::function<std::optional<Held>(absl::string_view server, uint32_t loop, ShardId shard)>;

  ChainFence(Look look, Violations& violations) : look_(std::move(look)), violations_(violations) {}

  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;
  void OnReceived(absl::Time now, absl::string_view receiver, const Message& message) override;

 private:
  const Look look_;
  Violations& violations_;
  // State before the message that is being received.
  std::optional<Held> before_;
};

}  // namespace covey::sim

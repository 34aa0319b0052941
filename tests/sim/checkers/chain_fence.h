// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "tests/sim/checkers/violations.h"
#include "tests/sim/observer.h"

namespace covey::sim {

// Invariant: a replica's content changes by records and pieces of its own chain only: what was sent
// under another chain epoch than the one that it knows changes nothing (P5).
class ChainFence : public Observer {
 public:
  struct Held {
    uint64_t generation = 0;
    uint64_t chain_epoch = 0;
    uint64_t index = 0;  // of the newest record
  };
  // What a loop of a server holds of a shard; nothing when it holds none of it.
  using Look =
      std::function<std::optional<Held>(absl::string_view server, uint32_t loop, ShardId shard)>;

  ChainFence(Look look, Violations& violations) : look_(std::move(look)), violations_(violations) {}

  void OnReceive(absl::Time now, absl::string_view receiver, const Message& message) override;
  void OnReceived(absl::Time now, absl::string_view receiver, const Message& message) override;

 private:
  const Look look_;
  Violations& violations_;
  // Before the message that is being received.
  std::optional<Held> before_;
};

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/string_view.h"
#include "common/cluster/ids.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: nothing that a hostile process has forged counts. No server takes a forged push, and
// no forged record, piece or acknowledgement changes what a replica holds or takes for durable.
class ForgedMessages : public Observer {
 public:
  struct Taken {
    uint64_t index = 0;    // of the newest record
    uint64_t durable = 0;  // and of the newest one that is durable
    friend bool operator==(const Taken&, const Taken&) = default;
  };
  // What a loop of a server has taken of a shard; nothing when it holds no content of it.
  using Look =
      std::function<std::optional<Taken>(absl::string_view server, uint32_t loop, ShardId shard)>;
  ForgedMessages(Look look, Violations& violations)
      : look_(std::move(look)), violations_(violations) {}

  void OnForged(absl::Time now, absl::string_view receiver, const Message& message) override;
  void OnForgedReceived(absl::Time now, absl::string_view receiver,
                        const Message& message) override;
  void OnAnswerToForger(absl::Time now, const Message& message) override;

 private:
  const Look look_;
  Violations& violations_;
  // State before the message that is being received.
  std::optional<Taken> before_;
};

}  // namespace covey::sim

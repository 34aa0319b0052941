// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "tests/sim/checkers/shard_reply.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/observer.h"

namespace covey::sim {

// Invariant: within one history of a shard a push is taken as new at most once. It has one version
// at which it was applied; every later reply for the same push id repeats that version, whichever
// server gives it. A step of a group is one push, under whichever generation of the group it is
// pushed. Only replies that call the push durable count; others may be forgotten.
class AppliedOnce : public Observer {
 public:
  explicit AppliedOnce(Violations& violations) : violations_(violations) {}
  void OnSend(absl::Time now, const Message& message) override;

 private:
  // Producer kind, producer, its incarnation (0 for groups), sequence.
  using PushKey = std::tuple<ShardHistory, int, uint64_t, uint64_t, uint64_t>;

  struct Push {
    uint64_t version = 0;  // 0 = received, not applied yet
    // The request whose reply said that the push is new; its durability receipt may say so again.
    std::optional<std::pair<uint64_t, uint64_t>> answered_as_new;
  };

  Violations& violations_;
  std::map<PushKey, Push> pushes_;
};

}  // namespace covey::sim

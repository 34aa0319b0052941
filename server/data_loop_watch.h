// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace covey::server {

// Watches the data loops of a server from its control loop, which alone speaks to the scheduler: a
// loop that reports no load for kSilentMax hangs, in a call that does not end. Nobody else would
// notice, because heartbeats do not pass data loops, and a head has no predecessor.
//
// Actor-confined. Deterministic.
class DataLoopWatch {
 public:
  // Five missing reports. With the silence after which a node is dead, which adds to it when the
  // process cannot end, this is 5 s.
  static constexpr absl::Duration kSilentMax = absl::Milliseconds(2500);

  struct SilentLoop {
    uint32_t loop = 0;
    absl::Duration silence;
  };

  // Loops 1 to `loops`.
  explicit DataLoopWatch(uint32_t loops) : heard_(loops, absl::InfiniteFuture()) {}

  // The loops have been given a view, and report from now on. Idempotent.
  void Start(absl::Time now);
  // A loop has reported its load.
  void Hear(absl::Time now, uint32_t loop) { heard_[loop - 1] = now; }
  // The control loop itself stood still for this long, up to `now`: reports may wait unread.
  void DiscountPause(absl::Time now, absl::Duration pause);

  // The loop that has been silent for the longest time; nothing before Start.
  std::optional<SilentLoop> Longest(absl::Time now) const;
  // When a loop will have been silent for kSilentMax.
  absl::Time NextDeadline() const;

 private:
  // When each loop was last heard; infinite: before Start.
  std::vector<absl::Time> heard_;
};

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace covey::sim {

// The clock of one machine: it is faster or slower than the simulator's by a constant factor. It
// goes on while a process is paused, as CLOCK_BOOTTIME does while a machine sleeps.
//
// Actor-confined. Deterministic.
class LocalClock {
 public:
  // Drifts are in parts of this.
  static constexpr int64_t kParts = 1 << 16;
  // The clocks of two machines that drift by at most this differ by less than leases allow for, one
  // part in 16 (scheduler/nodes/membership.h).
  static constexpr int64_t kDriftMax = kParts / 34;
  static_assert((kParts + kDriftMax) * 16 < (kParts - kDriftMax) * 17);

  // `drift`: by how many parts the clock is faster; negative: slower; at most kDriftMax either way.
  explicit LocalClock(int64_t drift);

  // What the clock says at the simulator's time `now`. Never goes back.
  absl::Time Read(absl::Time now) const;
  // A simulator's time at which the clock says `local` or more, and no nanosecond before it does.
  absl::Time WhenItReads(absl::Time local) const;
  // Plants PlantedBug::kLeaseOnAwakeClock: the clock has stood still for `pause`.
  void StandStill(absl::Duration pause) { lost_ += pause; }

 private:
  // Of nanoseconds since the epoch.
  int64_t Drifted(int64_t now_ns) const;

  const int64_t drift_;
  absl::Duration lost_;
};

}  // namespace covey::sim

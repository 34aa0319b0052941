// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace covey::scheduler {

// When snapshots are made. A value.
struct SnapshotsOptions {
  // Whether this scheduler and its servers have a store.
  bool has_store = false;
  // Time from the beginning of one snapshot to that of the next; infinite = only when asked for.
  absl::Duration every = absl::InfiniteDuration();
  // And after so many training examples; 0 = not by examples.
  uint64_t every_samples = 0;
  // Time between two flushes, which are made while updates are at risk (JobDurability); infinite =
  // none are made. A flush is a snapshot like any other, but no news.
  absl::Duration flush_every = absl::InfiniteDuration();
  // Complete snapshots that stay in the store; the oldest ones are removed.
  uint32_t kept = 3;
  // A snapshot that takes longer is given up.
  absl::Duration deadline = absl::Minutes(10);
  // The time of day is `now` plus this duration. It dates snapshots for users; no decision depends
  // on it.
  absl::Duration wall_clock_ahead = absl::ZeroDuration();
};

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "common/metrics/duration_histogram.h"

namespace covey::server {

// Counters of a data loop since its start.
struct ShardCounters {
  // Of `replication`.
  static constexpr absl::Duration kReplicationBounds[] = {
      absl::Milliseconds(1), absl::Milliseconds(5), absl::Milliseconds(25), absl::Milliseconds(125),
      absl::Seconds(1)};

  uint64_t pushes = 0;  // received and new
  uint64_t pulls = 0;
  uint64_t duplicates = 0;
  uint64_t malformed = 0;   // requests that no correct peer sends, and damaged frames
  uint64_t impostors = 0;   // messages in the name of a node, sent by another process
  uint64_t non_finite = 0;  // pushes refused for NaN or infinity
  uint64_t discarded =
      0;  // pushes received and not applied, because they are too stale for the contract
  uint64_t refused = 0;         // requests refused because too much waits, or too much is used
  uint64_t replicated = 0;      // records sent to successors
  uint64_t content_bytes = 0;   // sent to replicas that were being filled
  uint64_t reply_bytes = 0;     // in the frames of replies to pushes and pulls
  uint64_t unfit_replicas = 0;  // its own replicas that turned out to be wrong
  // From sending a record to a successor until that has confirmed it, and with it all full replicas
  // behind it; of one record at a time of each shard.
  DurationHistogram replication{kReplicationBounds};
};

}  // namespace covey::server

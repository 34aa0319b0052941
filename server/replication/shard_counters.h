// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace covey::server {

// What a data loop did since its start.
struct ShardCounters {
  uint64_t pushes = 0;  // received and new
  uint64_t pulls = 0;
  uint64_t duplicates = 0;
  uint64_t malformed = 0;  // requests that no honest peer sends, and frames whose bits have flipped
  uint64_t non_finite = 0;  // pushes refused for NaN or infinity
  uint64_t discarded = 0;   // pushes received and not applied, because the contract cuts such age
  uint64_t refused = 0;     // requests refused because too much waits
  uint64_t replicated = 0;  // records sent to successors
  uint64_t content_bytes = 0;   // sent to replicas that were filled
  uint64_t unfit_replicas = 0;  // of its own, that turned out wrong

  friend bool operator==(const ShardCounters&, const ShardCounters&) = default;
};

}  // namespace covey::server

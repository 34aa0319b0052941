// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"

namespace covey::cli {

// Payload of the round trips.
inline constexpr uint64_t kRoundTripBytes = 64;

// The work of one turn of a limit: the same that our operation of this size does.
struct LimitLoad {
  // "tcp" or "ipc".
  std::string transport;
  // Payload of one operation. kRoundTripBytes: round trips instead of a rate.
  uint64_t bytes = 0;
  // Operations in flight, each with memory of its own.
  size_t lanes = 1;
  // A turn takes about this long.
  absl::Duration duration;
  // Round trips per turn.
  int round_trips = 0;
};

// Memory of one lane, written once so that its pages exist.
using LaneMemory = std::vector<uint8_t>;
std::vector<LaneMemory> MakeLanes(uint64_t bytes, size_t lanes);

// Reads every byte; the result keeps the compiler from leaving it out.
uint64_t ReadThrough(const uint8_t* bytes, size_t size);

}  // namespace covey::cli

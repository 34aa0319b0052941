// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/bench/measure/turns.h"
#include "client/handle.h"

namespace covey::cli {

// Starts an operation of a client with the memory of a lane.
using Start = std::function<client::Handle(int lane)>;

// The work of one turn of an operation.
struct OperationTurn {
  // Payload of one operation.
  uint64_t bytes = 0;
  // Operations in flight, and lanes.
  int outstanding = 1;
  // The turn takes at least this long.
  absl::Duration duration;
  // Round trips instead, of turns that make them.
  int round_trips = 0;
};

// One start per client, all in flight at the same time; GB/s of all together.
absl::StatusOr<Sample> RateOfAll(const std::vector<Start>& starts, const OperationTurn& turn);

// One operation at a time; p50, p99 and p99.9 in us.
absl::StatusOr<Sample> RoundTrips(const Start& start, const OperationTurn& turn);

// One pull at a time in GB/s, each behind a push that is not timed; no push when it is null.
absl::StatusOr<Sample> OnePullAtATime(const Start& push, const Start& pull,
                                      const OperationTurn& turn);

// Small pulls, one at a time, while large pushes of the same client are in flight: p50, p99 and
// p99.9 of the pulls in us, and the pushes' GB/s.
absl::StatusOr<Sample> SmallBesideLarge(const Start& large_push, const Start& small_pull,
                                        const OperationTurn& turn);

}  // namespace covey::cli

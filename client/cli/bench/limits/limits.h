// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/bench/limits/limit_load.h"
#include "client/cli/bench/measure/turns.h"

namespace covey::cli {

// The limits that belong beside operations of `load`, each with its partner process, which lives as
// long as the contender. Round trips: raw socket and raw ZeroMQ. Rates: the same, the socket in
// both directions; over ipc from 1 MiB on also the ring of shared memory and the copy out of
// another process. A limit that this system does not allow is left out, with a line in `left_out`.
absl::StatusOr<std::vector<Contender>> MakeLimits(const LimitLoad& load,
                                                  std::vector<std::string>& left_out);

// Names of the limits and peers that stand beside an operation of ours: "push", "pull" or
// "push_pull"; with `suffix` " p50", " p99", … of round trips.
std::vector<std::string> LimitsOf(const std::string& operation, const std::string& suffix);

// The limits of memory, with arrays of `bytes`: "memory copy" and "memory stream".
std::vector<Contender> MakeMemoryLimits(uint64_t bytes, absl::Duration duration);

// Is the partner process `spec`: "socket ENDPOINT", "zeromq ENDPOINT", "ring PATH BYTES" or "memory
// BYTES". Returns only on failure. INVALID_ARGUMENT: no such partner.
absl::Status ServePartner(const std::string& spec);

}  // namespace covey::cli

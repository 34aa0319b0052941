// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/bench/client_load.h"
#include "client/cli/bench/figure.h"

namespace covey::cli {

// The upper bound for the figures: two processes with one plain ZeroMQ socket each, and nothing
// else. One sends messages of a given size and keeps as many in flight as the client does; the
// other discards them and answers each with an empty message.
// and answers with an empty message each.

// The receiving half, in a process of its own: listens on `endpoint` ("tcp://127.0.0.1:0",
// "ipc://…"), prints its address, and answers until it is killed.
absl::Status ServeRawPair(const std::string& endpoint);

// The sending half: one figure per size, and the 64-byte round trip.
absl::StatusOr<std::vector<Figure>> MeasureRawPair(const std::string& address,
                                                   const std::string& transport,
                                                   const LoadOptions& options);

}  // namespace covey::cli

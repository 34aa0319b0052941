// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey {

// What every program of ours does first in main, before it starts a thread:
//  - memory: what was freed stays with the process. libzmq allocates each received message afresh;
//    by default glibc would map and unmap the large ones, and first touch of new pages is several
//    times slower than the network;
//  - log: COVEY_LOG_FORMAT = auto | human | json, COVEY_LOG_LEVEL = debug | info | warning | error;
//    `name` stands in every line and may be empty. Protobuf's own log is silent, or a peer could
//    fill our disk with its complaints;
//  - signals: SIGTERM and SIGINT wait for WaitForTermination; SIGPIPE is an error code.
void InitProcess(absl::string_view name);

// Cores that this process may run on, at least 1.
uint32_t UsableCores();
// This machine's, for people; "unknown" when it has none.
std::string HostName();

// Blocks until SIGTERM or SIGINT arrives and returns its number; nothing when `timeout` passes
// first. Further ones are again ordinary after the first was returned, so a second Ctrl-C kills.
std::optional<int> WaitForTermination(absl::Duration timeout = absl::InfiniteDuration());

// Makes WaitForTermination return SIGTERM: the program itself wants to end in order. Thread-safe.
void RequestTermination();

}  // namespace covey

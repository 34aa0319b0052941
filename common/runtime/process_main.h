// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey {

// Sets up the process. Every program calls it first in main, before it starts a thread:
//  - memory: freed memory stays with the process. libzmq allocates memory for each received
//    message; by default glibc would map and unmap it for large ones, and first touch of new pages
//    is several times slower than the network;
//  - locks: Debian builds Abseil, with which gRPC locks, for debugging. It would remember in which
//    orders locks were ever taken, in memory that grows with every connection and is never freed,
//    and end the process at two orders that do not fit, even where no deadlock is possible;
//  - log: COVEY_LOG_FORMAT = auto | human | json, COVEY_LOG_LEVEL = debug | info | warning | error;
//    every line contains `name`, unless it is empty. Protobuf's own log is silenced, since a peer
//    could fill the disk with its messages;
//  - signals: SIGTERM and SIGINT wait for WaitForTermination; SIGPIPE is an error code.
void InitProcess(absl::string_view name);

// The part of InitProcess about memory, for a library in a program that is not ours.
void KeepFreedMemory();

// Cores that this process may run on, at least 1.
uint32_t UsableCores();
// Name of this machine, for users; "unknown" when it has none.
std::string HostName();

// Blocks until SIGTERM or SIGINT arrives and returns its number; nothing when `timeout` passes
// first. After the first signal was returned, a further SIGINT has its default effect, so that a
// second Ctrl-C kills. A further SIGTERM does not end the process, and waits for the next call:
// supervisors may ask several times, as Slurm's scancel does, and so may the process itself.
std::optional<int> WaitForTermination(absl::Duration timeout = absl::InfiniteDuration());

// For services. From now on SIGHUP ends neither this process nor the programs that it starts: it
// waits for WaitForTermination with `on_hangup`. First in main, before it starts a thread.
void HoldHangups();
// As above; meanwhile SIGHUP calls `on_hangup`, on this thread. Several that come together call it
// once, after the last of them.
std::optional<int> WaitForTermination(absl::Duration timeout,
                                      const std::function<void()>& on_hangup);

// Makes WaitForTermination return SIGTERM, when the program itself wants to end. Thread-safe.
void RequestTermination();

}  // namespace covey

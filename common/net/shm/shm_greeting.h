// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/descriptor.h"

namespace covey {

// How two processes on one host find each other and exchange their regions: through an abstract
// Unix socket whose name is the endpoint at which the listener is reached otherwise, for example
// "tcp://127.0.0.1:40001". Such names belong to a network namespace, as TCP ports do. So a process
// that finds the name has found the listener itself, on the same host; other hosts and other
// namespaces find nothing. Only processes of the same user talk to each other.
//
// Each side sends its greeting at once. Afterwards the socket carries nothing; when it closes, the
// peer is gone. No call blocks.

// What a process hands over: the memory that it writes, and the eventfd that wakes its loop.
struct ShmGreeting {
  Descriptor region;
  Descriptor wake_up;
};

// INVALID_ARGUMENT: the endpoint is too long for a name. UNAVAILABLE: the name is taken, or the
// system's error.
absl::StatusOr<Descriptor> ListenForShm(const std::string& endpoint);
// The next connection; nullopt: there is none, or it is that of another user. RESOURCE_EXHAUSTED:
// the system lacks memory or descriptors; the connection goes on waiting.
absl::StatusOr<std::optional<Descriptor>> AcceptShm(const Descriptor& listener);
// NOT_FOUND: on this host and in this namespace no process listens under this name.
// PERMISSION_DENIED: it belongs to another user. UNAVAILABLE: the system's error.
absl::StatusOr<Descriptor> ConnectShm(const std::string& endpoint);

// `region` and `wake_up` stay open here. UNAVAILABLE: the peer is gone.
absl::Status SendShmGreeting(const Descriptor& socket, const Descriptor& region, int wake_up);
// nullopt: it has not arrived. UNAVAILABLE: the peer is gone. INVALID_ARGUMENT: this is no greeting
// of this version. RESOURCE_EXHAUSTED: this process has no descriptors left.
absl::StatusOr<std::optional<ShmGreeting>> ReadShmGreeting(const Descriptor& socket);

}  // namespace covey

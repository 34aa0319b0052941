// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey {

// What a process tells its supervisor: systemd, or another one with the protocol of sd_notify(3),
// which sets NOTIFY_SOCKET in the environment. Where it is not set, these functions do nothing.
// None of them blocks. A message that cannot be sent is logged, and the process goes on.
// Thread-safe.

// The process serves from now on, and its unit counts as started (Type=notify). `status` is one
// line, which `systemctl status` shows.
void NotifyReady(absl::string_view status);
// Replaces the line.
void NotifyStatus(absl::string_view status);
// The process has begun to end. The supervisor waits for `at_most`, even if its TimeoutStopSec= is
// shorter, before it kills the process.
void NotifyStopping(absl::Duration at_most);

// Sends `state`, lines of the form NAME=VALUE, to the socket at `address`: an absolute path, or '@'
// and the name of an abstract socket.
//   INVALID_ARGUMENT: the address is neither, or too long. UNAVAILABLE: nobody listens there, or
//   too many messages wait there.
absl::Status SendToSupervisor(absl::string_view address, absl::string_view state);

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace covey {

// Whether only processes of this host reach a port at `host`: a loopback address, or "localhost".
// Pure.
bool IsLoopback(absl::string_view host);

// How a process listens, and for whom.
struct Exposure {
  absl::string_view setting;  // "--host", for errors
  absl::string_view host;
  bool is_secured = false;   // with credentials: --tls
  bool is_insecure = false;  // --insecure
};

// FAILED_PRECONDITION: the process would listen beyond this host without credentials, and nobody
// has said that this is wanted; INVALID_ARGUMENT: --insecure together with credentials. Pure.
absl::Status CheckExposure(const Exposure& exposure);

// Logs a warning where other hosts may look for this process in vain: it listens at an address that
// only this host reaches, and a scheduler of `schedulers`, "HOST:PORT[,HOST:PORT]", is at another.
void WarnIfOutOfReach(absl::string_view setting, absl::string_view host,
                      absl::string_view schedulers);
// Whether it logs one. Pure.
bool IsOutOfReach(absl::string_view host, absl::string_view schedulers);

// Lets this process have as many open files and sockets as the system allows any. With the usual
// 1,024 a stranger could open as many connections, and nobody else would get one. Not for programs
// of users, which may use select().
void AllowManyConnections();

// Logs a warning that everybody who reaches `address` is served.
void WarnOfExposure(absl::string_view address);
// As WaitForTermination; meanwhile WarnOfExposure, once a minute.
std::optional<int> WaitForTerminationInsecurely(absl::string_view address,
                                                const std::function<void()>& on_hangup);

}  // namespace covey

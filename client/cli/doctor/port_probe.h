// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace covey::cli {

// What a port does with a connection from here. A value.
struct PortAnswer {
  enum class Kind { kOpen, kRefused, kTimedOut, kUnreachable, kUnresolved };

  Kind kind = Kind::kTimedOut;
  // The system's reason; empty when open.
  std::string reason;
  // The first bytes that it sends of its own accord.
  std::string greeting;
  // The MTU of the way there as this machine knows it, and the largest packet that the other end
  // takes, at most that. 0 = closed, on this machine, or the system does not tell.
  uint32_t mtu = 0;
  uint32_t packet_bytes_max = 0;
};

// Connects to all `endpoints` at once, "HOST:PORT", "tcp://HOST:PORT" or "ipc://PATH", waits for a
// greeting for `greeting`, and closes them. Sends nothing. Takes at most twice `deadline`, and
// `greeting`. An answer for each endpoint, in their order.
std::vector<PortAnswer> ProbePorts(const std::vector<std::string>& endpoints,
                                   absl::Duration deadline, absl::Duration greeting);

// What listens at an open port, by what it says first.
enum class PortProtocol { kSilent, kGrpc, kZeroMq, kOther };
// Pure.
PortProtocol ProtocolOf(absl::string_view greeting);

}  // namespace covey::cli

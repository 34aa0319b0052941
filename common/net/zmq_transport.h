#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "common/cluster/limits.h"
#include "common/net/transport.h"
#include "common/net/wire.h"

namespace covey {

struct ZmqOptions {
  // "tcp://127.0.0.1:0" (0 = any free port), "ipc:///run/covey/server-0-1", or empty: listens
  // nowhere, and still gets answers to what it sends.
  std::string listen;
  // Messages waiting per peer and direction; beyond it they are dropped.
  int queue_messages = kTransportQueueMessagesMax;
  WireLimits limits;
};

// The data plane's network: one ZeroMQ ROUTER socket that listens and one DEALER socket per route,
// with an I/O thread of their own. Tensor frames are neither copied on the way out nor on the way
// in. Messages are those of wire.h; whatever else arrives is counted and dropped, from raw bytes on
// the port to lying lengths.
//
// Limits: a part of a message is at most limits.frame_bytes. libzmq assembles a message before it
// hands it over and does not bound its number of parts, so a hostile peer can make it use memory:
// data ports belong on trusted networks.
//
// UNAVAILABLE: the address is in use; INVALID_ARGUMENT: it is none of this machine.
absl::StatusOr<std::unique_ptr<Transport>> MakeZmqTransport(const ZmqOptions& options);

}  // namespace covey

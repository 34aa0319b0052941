// SPDX-License-Identifier: Apache-2.0
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
  // Messages waiting to be sent, per peer; beyond it they are dropped.
  int queue_messages = kTransportQueueMessagesMax;
  // Messages that have arrived and not been taken, per peer; beyond it the peer's socket is not
  // read any further, so that they wait with the sender.
  int arrived_messages = 128;
  WireLimits limits;
};

// The data plane's network: one ZeroMQ ROUTER socket that listens and one DEALER socket per route,
// with an I/O thread of their own. Tensor frames are neither copied on the way out nor on the way
// in. Messages are those of wire.h; whatever else arrives is counted and dropped, from raw bytes on
// the port to lying lengths.
//
// Memory: libzmq bounds queues by messages, not bytes. What bounds the bytes that have arrived,
// from peers that keep to the protocol, is their credit (Envelope.credit_bytes): the sum of all is
// the server's budget. From peers that do not: arrived_messages times the size of a message, per
// connection; then TCP's window closes, and the kernel holds what its receive buffer takes (6 MiB
// by default, outside this process's memory). Frames that wait to be sent are references.
//
// A connection that breaks: what waits to be sent stays in its queue and goes to whoever listens at
// the endpoint next. That process is another node, and drops it (event_loop.h).
//
// Limits: a part of a message is at most limits.frame_bytes. libzmq assembles a message before it
// hands it over and does not bound its number of parts, so a hostile peer can make it use memory:
// data ports belong on trusted networks.
//
// UNAVAILABLE: the address is in use; INVALID_ARGUMENT: it is none of this machine.
absl::StatusOr<std::unique_ptr<Transport>> MakeZmqTransport(const ZmqOptions& options);

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "common/net/message.h"
#include "common/net/wire.h"
#include "common/net/zmq/part_reader.h"
#include "common/net/zmq/zmq_socket.h"

namespace covey {

// A message of ours as the parts of a ZeroMQ message: the frames of wire.h, one part each; between
// a ROUTER and its owner the routing id of the peer comes first.

// Sends `message` through a dealer, or to its connection through a router. Takes its frames, which
// are not copied. False when the queue is full or the connection gone; then nothing was sent.
// Precondition: PrepareHead has returned `head_bytes` for this object, and it was not moved since.
bool SendMessage(ZmqSocket& socket, size_t head_bytes, Message& message);

// Reads the message of which `parts` is at the first part; `kind` is that of the socket. False when
// it is not a valid message; then `message` is unspecified, and parts may be left. No input makes
// this function crash.
bool ReadMessage(ZmqSocket::Kind kind, const WireLimits& limits, PartReader& parts,
                 Message& message);

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "absl/status/status.h"
#include "common/net/message.h"
#include "common/net/seal/message_sealer.h"
#include "common/net/seal/sealed_message.h"
#include "common/net/wire.h"
#include "common/net/zmq/part_reader.h"
#include "common/net/zmq/zmq_part.h"
#include "common/net/zmq/zmq_socket.h"

namespace covey {

// A message of ours as the parts of a ZeroMQ message: the frames of wire.h, one part each; between
// a ROUTER and its owner the routing id of the peer comes first.

// Sends `message` through a dealer, or to its connection through a router. Takes its frames, which
// are not copied, and `unsent`, if there is one, counts them. UNAVAILABLE: the queue is full or the
// connection gone; then nothing was sent. Precondition: PrepareHead has returned `head_bytes` for
// this object, and it was not moved since.
absl::Status SendMessage(ZmqSocket& socket, size_t head_bytes, Message& message,
                         const std::shared_ptr<UnsentBytes>& unsent);
// The same, sealed. Other errors: those of MessageSealer::Seal; nothing was sent.
absl::Status SendSealedMessage(ZmqSocket& socket, size_t head_bytes, Message& message,
                               MessageSealer& sealer, const std::shared_ptr<UnsentBytes>& unsent);

// Reads the message of which `parts` is at the first part; `kind` is that of the socket. After an
// error, which says why it is not a valid message, `message` is unspecified, and parts may be left.
// No input makes this function crash.
absl::Status ReadMessage(ZmqSocket::Kind kind, const WireLimits& limits, PartReader& parts,
                         Message& message);
// The same for a message that is to be opened, with nothing checked but sizes.
absl::Status ReadSealedMessage(ZmqSocket::Kind kind, const WireLimits& limits, PartReader& parts,
                               SealedMessage& message);

}  // namespace covey

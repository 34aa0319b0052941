// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "common/net/zmq/handshake_counter.h"
#include "common/net/zmq/part_reader.h"
#include "common/net/zmq/zmq_socket.h"

namespace covey {

// Receives libzmq's events about the connections of a listening socket, and counts the connections
// that failed ZeroMQ's handshake (handshake_counter.h says how exactly). Actor-confined.
class ConnectionMonitor {
 public:
  // To be created before `listener` is bound. At most one per context.
  ConnectionMonitor(void* context, ZmqSocket& listener);

  // Where the events arrive; to be polled.
  ZmqSocket& socket() { return socket_; }

  // Reads the event of which `parts` is at the first part. Returns how many more connections have
  // failed, as far as known now.
  uint64_t Read(PartReader& parts);

 private:
  ZmqSocket socket_;
  HandshakeCounter handshakes_;
};

}  // namespace covey

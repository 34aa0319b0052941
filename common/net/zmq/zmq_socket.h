// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "common/net/zmq/zmq_part.h"

namespace covey {

// A ZeroMQ socket with the options of our transport. Closes itself, and drops what waits to be
// sent. No method blocks. Actor-confined. `context` outlives it.
class ZmqSocket {
 public:
  enum class Kind {
    kRouter,   // listens
    kDealer,   // leads to one endpoint
    kMonitor,  // receives libzmq's events about another socket, inside the process
  };
  // Of routers and dealers; a monitor has none.
  struct Limits {
    int queue_messages = 0;    // that wait to be sent, per peer
    int arrived_messages = 0;  // that have arrived and were not received, per peer
    // Of one part. A peer that sends a larger one is disconnected.
    size_t part_bytes = 0;
  };
  struct PartOptions {
    bool last;
  };

  ZmqSocket(void* context, Kind kind, const Limits& limits);
  ~ZmqSocket();
  ZmqSocket(const ZmqSocket&) = delete;
  ZmqSocket& operator=(const ZmqSocket&) = delete;

  Kind kind() const { return kind_; }
  void* handle() const { return handle_; }
  // Readable while libzmq has an event that no call on the socket has consumed.
  int descriptor() const { return descriptor_; }

  // Listens at an endpoint, or leads to it. Names in it have been looked up. False when libzmq
  // refuses it; zmq_errno() says why.
  bool Bind(const std::string& endpoint);
  bool Connect(const std::string& endpoint);

  bool HasInput() const;

  // False when the queue is full or the peer is gone. Once the first part of a message is accepted,
  // so are the others.
  bool SendPart(ZmqPart& part, PartOptions options);

 private:
  // libzmq takes addresses of IPv6 only where it is told to, and then shows those of IPv4 as ones
  // of IPv6.
  void AllowAddressOf(const std::string& endpoint);

  const Kind kind_;
  void* const handle_;
  int descriptor_ = -1;

  // Whether it is in the poller's list of sockets that may have input.
  friend class SocketPoller;
  bool ready_ = false;
};

}  // namespace covey

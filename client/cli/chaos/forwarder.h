// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <list>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "common/base/descriptor.h"

namespace covey::cli {

// A free port of 127.0.0.1 that no other process is given during this object's life, not even after
// its user has begun to listen there. The user sets SO_REUSEADDR, as libzmq does.
class ReservedPort {
 public:
  static absl::StatusOr<ReservedPort> Make();
  uint16_t port() const { return port_; }

 private:
  Descriptor socket_;
  uint16_t port_ = 0;
};

// A network path that can be interrupted without root privileges: accepts connections on 127.0.0.1,
// and carries the bytes of each to one port there and back. Stopping its process (SIGSTOP)
// interrupts the path: connections stay open, but nothing passes. When the process continues, so
// does the traffic.
//
// Confined to one thread. At most kConnectionsMax connections, of kBufferBytes in each direction;
// further ones wait in the kernel.
class Forwarder {
 public:
  static constexpr size_t kConnectionsMax = 512;
  static constexpr size_t kBufferBytes = 64 << 10;

  // One listener per target, at a port of its own. The targets need not listen yet.
  // RESOURCE_EXHAUSTED and others: the system's error.
  static absl::StatusOr<Forwarder> Open(const std::vector<uint16_t>& targets);

  // The ports where it listens, by target.
  const std::vector<uint16_t>& ports() const { return ports_; }
  size_t connections() const { return connections_.size(); }

  // Carries the available bytes; waits for some for at most `wait`.
  void Step(absl::Duration wait);

 private:
  struct Listener {
    Descriptor socket;
    uint16_t target = 0;
  };
  // From `sockets[i]` to the other one.
  struct Direction {
    std::vector<char> buffer;
    size_t sent = 0;
    bool ended = false;   // the sender has finished
    bool passed = false;  // and the receiver was told
  };
  struct Connection {
    std::array<Descriptor, 2> sockets;
    std::array<Direction, 2> directions;
    bool broken = false;
  };

  void Accept(const Listener& listener);
  static void Carry(Connection& connection, size_t from);
  static short EventsOf(const Connection& connection, size_t side);

  std::vector<Listener> listeners_;
  std::vector<uint16_t> ports_;
  std::list<Connection> connections_;
};

}  // namespace covey::cli

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

namespace covey::cli {

// An open descriptor, closed with this. Movable.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor() { Close(); }
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept;

  int number() const { return number_; }
  bool open() const { return number_ >= 0; }
  void Close();

 private:
  int number_;
};

// A free port of 127.0.0.1 that nobody else is given while this lives, not even after its user has
// begun to listen there. The user sets SO_REUSEADDR, as libzmq does.
class ReservedPort {
 public:
  static absl::StatusOr<ReservedPort> Make();
  uint16_t port() const { return port_; }

 private:
  Descriptor socket_;
  uint16_t port_ = 0;
};

// A stretch of network that can be broken without being root: accepts connections on 127.0.0.1, and
// carries the bytes of each to one port there and back. Whoever stops the process in which it runs
// has a network that loses its way: connections stay open, nothing passes; it goes on where it was
// when the process does.
//
// Confined to one thread. At most kConnectionsMax connections, of kBufferBytes in each direction;
// further ones wait in the kernel.
class Forwarder {
 public:
  static constexpr size_t kConnectionsMax = 512;
  static constexpr size_t kBufferBytes = 64 << 10;

  // One listener at a port of its own per target, which need not be there yet. RESOURCE_EXHAUSTED
  // and others: what the system said.
  static absl::StatusOr<Forwarder> Open(const std::vector<uint16_t>& targets);

  // Where it listens, by target.
  const std::vector<uint16_t>& ports() const { return ports_; }
  size_t connections() const { return connections_.size(); }

  // Carries what is there; waits for something `wait` at most.
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
    bool ended = false;   // nothing more comes
    bool passed = false;  // and the receiver knows
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

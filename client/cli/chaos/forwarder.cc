// SPDX-License-Identifier: Apache-2.0
#include "client/cli/chaos/forwarder.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "common/base/status_macros.h"

namespace covey::cli {
namespace {

constexpr int kBacklog = 64;

sockaddr_in LocalAddress(uint16_t port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

Descriptor MakeSocket() {
  return Descriptor(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
}

// Binds to a free port, and returns it.
absl::StatusOr<uint16_t> BindAnywhere(const Descriptor& socket) {
  const int yes = 1;
  sockaddr_in address = LocalAddress(0);
  socklen_t size = sizeof(address);
  if (!socket.open() ||
      setsockopt(socket.number(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes)) != 0 ||
      bind(socket.number(), reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      getsockname(socket.number(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    return absl::ErrnoToStatus(errno, "taking a free port of 127.0.0.1");
  }
  return ntohs(address.sin_port);
}

void SendAtOnce(const Descriptor& socket) {
  const int yes = 1;
  setsockopt(socket.number(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
}

bool IsForLater(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

}  // namespace

absl::StatusOr<ReservedPort> ReservedPort::Make() {
  ReservedPort reserved;
  reserved.socket_ = MakeSocket();
  COVEY_ASSIGN_OR_RETURN(reserved.port_, BindAnywhere(reserved.socket_));
  return reserved;
}

absl::StatusOr<Forwarder> Forwarder::Open(const std::vector<uint16_t>& targets) {
  Forwarder forwarder;
  for (const uint16_t target : targets) {
    Listener listener = {.socket = MakeSocket(), .target = target};
    COVEY_ASSIGN_OR_RETURN(const uint16_t port, BindAnywhere(listener.socket));
    if (listen(listener.socket.number(), kBacklog) != 0) {
      return absl::ErrnoToStatus(errno, "listening on 127.0.0.1");
    }
    forwarder.ports_.push_back(port);
    forwarder.listeners_.push_back(std::move(listener));
  }
  return forwarder;
}

void Forwarder::Step(absl::Duration wait) {
  std::vector<pollfd> waited;
  const bool room = connections_.size() < kConnectionsMax;
  for (const Listener& listener : listeners_) {
    waited.push_back({.fd = room ? listener.socket.number() : -1, .events = POLLIN});
  }
  for (const Connection& connection : connections_) {
    for (const size_t side : {0, 1}) {
      const short events = EventsOf(connection, side);
      // poll reports a broken connection even when no events are requested, again and again.
      waited.push_back(
          {.fd = events == 0 ? -1 : connection.sockets[side].number(), .events = events});
    }
  }
  if (poll(waited.data(), waited.size(), static_cast<int>(absl::ToInt64Milliseconds(wait))) <= 0) {
    return;
  }
  for (Connection& connection : connections_) {
    Carry(connection, 0);
    Carry(connection, 1);
  }
  connections_.remove_if([](const Connection& connection) {
    return connection.broken ||
           (connection.directions[0].passed && connection.directions[1].passed);
  });
  for (size_t i = 0; i < listeners_.size(); ++i) {
    if ((waited[i].revents & POLLIN) != 0) Accept(listeners_[i]);
  }
}

void Forwarder::Accept(const Listener& listener) {
  Connection connection;
  connection.sockets[0] =
      Descriptor(accept4(listener.socket.number(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!connection.sockets[0].open()) return;
  connection.sockets[1] = MakeSocket();
  const sockaddr_in address = LocalAddress(listener.target);
  const int connected = connect(connection.sockets[1].number(),
                                reinterpret_cast<const sockaddr*>(&address), sizeof(address));
  // A refused client sees the connection close, and retries.
  if (connected != 0 && errno != EINPROGRESS) return;
  for (const Descriptor& socket : connection.sockets) SendAtOnce(socket);
  connections_.push_back(std::move(connection));
}

short Forwarder::EventsOf(const Connection& connection, size_t side) {
  const Direction& out = connection.directions[side];
  const Direction& in = connection.directions[1 - side];
  short events = 0;
  if (!out.ended && out.buffer.empty()) events |= POLLIN;
  if (!in.buffer.empty()) events |= POLLOUT;
  return events;
}

void Forwarder::Carry(Connection& connection, size_t from) {
  Direction& direction = connection.directions[from];
  const int source = connection.sockets[from].number();
  const int target = connection.sockets[1 - from].number();
  if (direction.buffer.empty() && !direction.ended) {
    direction.buffer.resize(kBufferBytes);
    const ssize_t size = recv(source, direction.buffer.data(), direction.buffer.size(), 0);
    const int error = errno;
    direction.buffer.resize(size > 0 ? static_cast<size_t>(size) : 0);
    direction.sent = 0;
    if (size == 0) direction.ended = true;
    // ENOTCONN: the connection to the target is still being established.
    if (size < 0 && !IsForLater(error) && error != ENOTCONN) connection.broken = true;
  }
  if (!direction.buffer.empty()) {
    const ssize_t size = send(target, direction.buffer.data() + direction.sent,
                              direction.buffer.size() - direction.sent, MSG_NOSIGNAL);
    if (size < 0 && !IsForLater(errno) && errno != ENOTCONN) connection.broken = true;
    if (size > 0) direction.sent += static_cast<size_t>(size);
    if (direction.sent == direction.buffer.size()) direction.buffer.clear();
  }
  if (direction.ended && direction.buffer.empty() && !direction.passed) {
    shutdown(target, SHUT_WR);
    direction.passed = true;
  }
}

}  // namespace covey::cli

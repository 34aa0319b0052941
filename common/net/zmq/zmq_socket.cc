// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/zmq_socket.h"

#include <zmq.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/match.h"
#include "common/base/check.h"

namespace covey {
namespace {

constexpr int kHandshakeMilliseconds = 5000;
constexpr int kReconnectMillisecondsMax = 1000;
// TCP waits for twice as long from try to try, and would let nothing pass for up to a minute after
// a link was cut for a minute. So a connection ends when the other host has acknowledged nothing
// for this duration, and attempts to make another one are short.
constexpr int kUnacknowledgedMillisecondsMax = 5000;
constexpr int kConnectMillisecondsMax = 2000;
// The same for a connection without traffic, whose host may be gone for good.
constexpr int kIdleSeconds = 10;
constexpr int kProbeSeconds = 2;
constexpr int kBacklog = 1024;

int TypeOf(ZmqSocket::Kind kind) {
  return kind == ZmqSocket::Kind::kRouter   ? ZMQ_ROUTER
         : kind == ZmqSocket::Kind::kDealer ? ZMQ_DEALER
                                            : ZMQ_PAIR;
}

void SetOption(void* socket, int option, int value) {
  COVEY_CHECK(zmq_setsockopt(socket, option, &value, sizeof(value)) == 0);
}

}  // namespace

ZmqSocket::ZmqSocket(void* context, Kind kind, const Limits& limits)
    : kind_(kind), handle_(zmq_socket(context, TypeOf(kind))) {
  COVEY_CHECK(handle_ != nullptr);
  SetOption(handle_, ZMQ_LINGER, 0);
  if (kind != Kind::kMonitor) {
    const int64_t part_bytes = static_cast<int64_t>(limits.part_bytes);
    zmq_setsockopt(handle_, ZMQ_MAXMSGSIZE, &part_bytes, sizeof(part_bytes));
    SetOption(handle_, ZMQ_SNDHWM, limits.queue_messages);
    SetOption(handle_, ZMQ_RCVHWM, std::min(limits.queue_messages, limits.arrived_messages));
    SetOption(handle_, ZMQ_HANDSHAKE_IVL, kHandshakeMilliseconds);
    SetOption(handle_, ZMQ_RECONNECT_IVL_MAX, kReconnectMillisecondsMax);
    SetOption(handle_, ZMQ_CONNECT_TIMEOUT, kConnectMillisecondsMax);
    SetOption(handle_, ZMQ_TCP_MAXRT, kUnacknowledgedMillisecondsMax);
    SetOption(handle_, ZMQ_TCP_KEEPALIVE, 1);
    SetOption(handle_, ZMQ_TCP_KEEPALIVE_IDLE, kIdleSeconds);
    SetOption(handle_, ZMQ_TCP_KEEPALIVE_INTVL, kProbeSeconds);
  }
  if (kind == Kind::kRouter) {
    SetOption(handle_, ZMQ_ROUTER_MANDATORY, 1);
    SetOption(handle_, ZMQ_BACKLOG, kBacklog);
    // With a domain libzmq refuses peers older than its handshake. Otherwise it takes nearly any
    // bytes for its oldest protocol, and garbage would keep a connection open.
    zmq_setsockopt(handle_, ZMQ_ZAP_DOMAIN, "covey", 5);
  }
  size_t size = sizeof(descriptor_);
  COVEY_CHECK(zmq_getsockopt(handle_, ZMQ_FD, &descriptor_, &size) == 0);
}

ZmqSocket::~ZmqSocket() { zmq_close(handle_); }

void ZmqSocket::AllowAddressOf(const std::string& endpoint) {
  if (absl::StartsWith(endpoint, "tcp://[")) SetOption(handle_, ZMQ_IPV6, 1);
}

bool ZmqSocket::Bind(const std::string& endpoint) {
  AllowAddressOf(endpoint);
  return zmq_bind(handle_, endpoint.c_str()) == 0;
}

bool ZmqSocket::Connect(const std::string& endpoint) {
  AllowAddressOf(endpoint);
  return zmq_connect(handle_, endpoint.c_str()) == 0;
}

bool ZmqSocket::HasInput() const {
  int events = 0;
  size_t size = sizeof(events);
  return zmq_getsockopt(handle_, ZMQ_EVENTS, &events, &size) == 0 && (events & ZMQ_POLLIN) != 0;
}

bool ZmqSocket::SendPart(ZmqPart& part, PartOptions options) {
  const int flags = ZMQ_DONTWAIT | (options.last ? 0 : ZMQ_SNDMORE);
  return zmq_msg_send(part.get(), handle_, flags) >= 0;
}

}  // namespace covey

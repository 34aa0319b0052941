// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/connection_monitor.h"

#include <zmq.h>

#include <cstring>

#include "common/base/check.h"

namespace covey {
namespace {

constexpr char kEndpoint[] = "inproc://connections";

}  // namespace

ConnectionMonitor::ConnectionMonitor(void* context, ZmqSocket& listener)
    : socket_(context, ZmqSocket::Kind::kMonitor, {}) {
  zmq_socket_monitor(listener.handle(), kEndpoint,
                     ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_HANDSHAKE_SUCCEEDED | ZMQ_EVENT_DISCONNECTED);
  zmq_connect(socket_.handle(), kEndpoint);
}

// An event has the form of zmq_socket_monitor(3): number and value, then an endpoint.
uint64_t ConnectionMonitor::Read(PartReader& parts) {
  uint16_t event = 0;
  int32_t value = 0;
  COVEY_CHECK(parts.bytes().size() == sizeof(event) + sizeof(value));
  std::memcpy(&event, parts.bytes().data(), sizeof(event));
  std::memcpy(&value, parts.bytes().data() + sizeof(event), sizeof(value));
  parts.SkipRest();
  const uint64_t failed_before = handshakes_.failed();
  if (event == ZMQ_EVENT_ACCEPTED) handshakes_.Accepted(value);
  if (event == ZMQ_EVENT_HANDSHAKE_SUCCEEDED) handshakes_.Succeeded();
  if (event == ZMQ_EVENT_DISCONNECTED) handshakes_.Closed(value);
  return handshakes_.failed() - failed_before;
}

}  // namespace covey

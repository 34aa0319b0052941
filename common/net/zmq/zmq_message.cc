// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/zmq_message.h"

#include <algorithm>
#include <utility>

#include "common/net/zmq/routing_id.h"
#include "common/net/zmq/zmq_part.h"

namespace covey {
namespace {

// Sends the routing id (to a connection of the router) and the head frame.
bool SendHead(ZmqSocket& socket, const Message& message, size_t head_bytes) {
  if (message.connection != 0) {
    const RoutingId id = UnpackRoutingId(message.connection);
    ZmqPart part(id.size());
    std::copy(id.begin(), id.end(), part.data());
    if (!socket.SendPart(part, {.last = false})) return false;
  }
  ZmqPart head(head_bytes);
  WriteHead(message, {head.data(), head.size()});
  return socket.SendPart(head, {.last = message.frames.empty()});
}

}  // namespace

bool SendMessage(ZmqSocket& socket, size_t head_bytes, Message& message) {
  if (!SendHead(socket, message, head_bytes)) return false;
  for (size_t i = 0; i < message.frames.size(); ++i) {
    ZmqPart frame(std::move(message.frames[i]));
    socket.SendPart(frame, {.last = i + 1 == message.frames.size()});
  }
  return true;
}

bool ReadMessage(ZmqSocket::Kind kind, const WireLimits& limits, PartReader& parts,
                 Message& message) {
  if (kind == ZmqSocket::Kind::kRouter) {
    message.connection = PackRoutingId(parts.bytes());
    if (message.connection == 0 || !parts.Next()) return false;
  }
  if (!ReadHead(parts.bytes(), limits, message.envelope).ok()) return false;
  while (parts.more()) {
    if (message.frames.size() == limits.frames || !parts.Next()) return false;
    message.frames.push_back(parts.TakeFrame());
  }
  return CheckFrames(message, limits).ok();
}

}  // namespace covey

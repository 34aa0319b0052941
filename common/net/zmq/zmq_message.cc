// SPDX-License-Identifier: Apache-2.0
#include "common/net/zmq/zmq_message.h"

#include <algorithm>
#include <span>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/net/zmq/routing_id.h"
#include "common/net/zmq/zmq_part.h"

namespace covey {
namespace {

// Without a text, because it is frequent and only counted.
absl::Status NotAccepted() { return absl::Status(absl::StatusCode::kUnavailable, ""); }

// Sends the routing id (to a connection of the router) and the head frame. The socket takes all
// parts of a message if it takes the first one.
absl::Status SendHead(ZmqSocket& socket, const Message& message, ZmqPart& head) {
  if (socket.kind() == ZmqSocket::Kind::kRouter) {
    const RoutingId id = UnpackRoutingId(message.connection);
    ZmqPart part(id.size());
    std::copy(id.begin(), id.end(), part.data());
    if (!socket.SendPart(part, {.last = false})) return NotAccepted();
  }
  return socket.SendPart(head, {.last = message.frames.empty()}) ? absl::OkStatus() : NotAccepted();
}

// Reads the routing id, if there is one, and stops at the head frame.
absl::Status ReadConnection(ZmqSocket::Kind kind, PartReader& parts, uint64_t& connection) {
  if (kind != ZmqSocket::Kind::kRouter) {
    connection = kRoutedConnection;
    return absl::OkStatus();
  }
  connection = PackRoutingId(parts.bytes());
  if (connection != 0 && parts.Next()) return absl::OkStatus();
  return absl::InvalidArgumentError("message with a routing id of the peer's own, or of no parts");
}

absl::Status ReadFrames(const WireLimits& limits, PartReader& parts,
                        absl::InlinedVector<Buffer, 1>& frames) {
  while (parts.more()) {
    if (frames.size() == limits.frames || !parts.Next()) {
      return absl::InvalidArgumentError(
          absl::StrCat("message with more than ", limits.frames, " frames"));
    }
    frames.push_back(parts.TakeFrame());
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status SendMessage(ZmqSocket& socket, size_t head_bytes, Message& message,
                         const std::shared_ptr<UnsentBytes>& unsent) {
  ZmqPart head(head_bytes);
  WriteHead(message, {head.data(), head.size()});
  COVEY_RETURN_IF_ERROR(SendHead(socket, message, head));
  for (size_t i = 0; i < message.frames.size(); ++i) {
    ZmqPart frame(std::move(message.frames[i]), unsent);
    socket.SendPart(frame, {.last = i + 1 == message.frames.size()});
  }
  return absl::OkStatus();
}

absl::Status SendSealedMessage(ZmqSocket& socket, size_t head_bytes, Message& message,
                               MessageSealer& sealer, const std::shared_ptr<UnsentBytes>& unsent) {
  ZmqPart head(MessageSealer::HeadBytes(message, head_bytes));
  absl::InlinedVector<ZmqPart, kFramesMax> frames;
  absl::InlinedVector<std::span<uint8_t>, kFramesMax> to;
  frames.reserve(message.frames.size());  // libzmq keeps a few bytes inside the part, which moves
  for (const Buffer& frame : message.frames) {
    ZmqPart& part = frames.emplace_back(frame.size(), unsent);
    to.emplace_back(part.data(), part.size());
  }
  COVEY_RETURN_IF_ERROR(sealer.Seal(message, {head.data(), head.size()}, to));
  COVEY_RETURN_IF_ERROR(SendHead(socket, message, head));
  for (size_t i = 0; i < frames.size(); ++i) {
    socket.SendPart(frames[i], {.last = i + 1 == frames.size()});
  }
  return absl::OkStatus();
}

absl::Status ReadMessage(ZmqSocket::Kind kind, const WireLimits& limits, PartReader& parts,
                         Message& message) {
  COVEY_RETURN_IF_ERROR(ReadConnection(kind, parts, message.connection));
  COVEY_RETURN_IF_ERROR(ReadHead(parts.bytes(), limits, message.envelope));
  COVEY_RETURN_IF_ERROR(ReadFrames(limits, parts, message.frames));
  return CheckFrames(message, limits);
}

absl::Status ReadSealedMessage(ZmqSocket::Kind kind, const WireLimits& limits, PartReader& parts,
                               SealedMessage& message) {
  COVEY_RETURN_IF_ERROR(ReadConnection(kind, parts, message.connection));
  message.head = parts.TakeFrame();
  return ReadFrames(limits, parts, message.frames);
}

}  // namespace covey

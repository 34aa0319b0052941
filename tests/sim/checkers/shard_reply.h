// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "common/base/buffer.h"
#include "common/cluster/ids.h"
#include "common/net/frame_checksum.h"
#include "common/net/message.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format_proto.h"

namespace covey::sim {

// One history of one shard. A shard whose servers were lost begins another one, under a new
// generation.
struct ShardHistory {
  ShardId shard;
  uint64_t generation = 0;
  friend auto operator<=>(const ShardHistory&, const ShardHistory&) = default;
};

// A server's state of a shard in a successful reply to a push or a pull.
struct ShardReply {
  ShardHistory history;
  const proto::ShardState* state = nullptr;
  // Of the reply to a push, else null.
  const proto::PushReply* push = nullptr;
  // The shard's values, decoded; empty when none were requested.
  std::span<const float> values;
  Buffer decoded;  // where they lie, unless in the message
};

// float32, or one of the formats of 2 bytes: workloads ask servers for no others.
inline WireFormat ValueFormatOf(const proto::Envelope& reply) {
  return WireFormatFromProto(reply.has_push_reply() ? reply.push_reply().value_format()
                                                    : reply.pull_reply().value_format())
      .value();
}

// Nothing when `message` is no such reply. Refers into `message`.
inline std::optional<ShardReply> ReadShardReply(const Message& message) {
  const proto::Envelope& envelope = message.envelope;
  // Damaged values prove nothing; how a client treats them is checked elsewhere.
  if (!StatusOf(message).ok() || !CheckFrameChecksums(message).ok()) return std::nullopt;
  ShardReply reply;
  if (envelope.has_push_reply()) {
    reply.push = &envelope.push_reply();
    reply.state = &reply.push->state();
    reply.history.shard = {TableId(reply.push->id().table()), ShardIndex(reply.push->id().shard())};
  } else if (envelope.has_pull_reply()) {
    reply.state = &envelope.pull_reply().state();
    reply.history.shard = {TableId(envelope.pull_reply().table()),
                           ShardIndex(envelope.pull_reply().shard())};
  } else {
    return std::nullopt;
  }
  reply.history.generation = reply.state->generation();
  if (message.frames.size() != 1) return reply;
  const Buffer& frame = message.frames[0];
  const WireFormat format = ValueFormatOf(envelope);
  if (format == WireFormat::kFloat32) {
    reply.values = frame.As<float>();
  } else {
    reply.decoded = Buffer::Allocate(frame.size() / 2 * sizeof(float));
    Decode(format, frame.bytes(), reply.decoded.MutableAs<float>());
    reply.values = reply.decoded.As<float>();
  }
  return reply;
}

}  // namespace covey::sim

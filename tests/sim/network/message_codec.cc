// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/network/message_codec.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/cluster/limits.h"
#include "common/net/wire.h"
#include "tests/sim/network/message_description.h"

namespace covey::sim {
namespace {

constexpr WireLimits kLimits = {.envelope_bytes = kControlEnvelopeBytesMax};

void FlipRandomBit(Random& random, Buffer& bytes) {
  const uint64_t bit = random.Below(bytes.size() * 8);
  bytes.MutableData()[bit / 8] ^= static_cast<uint8_t>(1 << bit % 8);
}

}  // namespace

bool MessageCodec::Pass(Message& message, double corruption) {
  bool corrupt = random_.Chance(corruption);
  if (corrupt && !message.frames.empty() && random_.Chance(0.5)) {
    // Flips a bit in the data, not in the header, which has a checksum of its own; the message
    // arrives.
    corrupt = false;
    Damage(message);
  }
  switch (codec_) {
    case Codec::kNone:
      return !corrupt;
    case Codec::kProtobuf:
      return PassProtobuf(message, corrupt);
    case Codec::kWire:
      return PassWire(message, corrupt);
  }
  return false;
}

bool MessageCodec::PassProtobuf(Message& message, bool corrupt) {
  const std::string bytes = message.envelope.SerializeAsString();
  COVEY_CHECK(message.envelope.ParseFromString(bytes));
  return !corrupt;
}

bool MessageCodec::PassWire(Message& message, bool corrupt) {
  if (!IsOfDataPlane(message.envelope)) {
    // gRPC carries the header, and its own checks find a flipped bit.
    if (corrupt) random_.Below((kWirePreludeBytes + message.envelope.ByteSizeLong()) * 8);
    return PassProtobuf(message, corrupt);
  }
  const uint64_t connection = message.connection;
  auto frames = EncodeMessage(kLimits, std::move(message));
  COVEY_CHECK(frames.ok());
  if (corrupt) {
    Buffer head = Buffer::CopyOf(frames->front().bytes());
    FlipRandomBit(random_, head);
    frames->front() = std::move(head);
  }
  auto decoded = DecodeMessage(*frames, kLimits);
  if (!decoded.ok()) return false;
  // An undetected flipped bit would be a hole in the wire format.
  COVEY_CHECK(!corrupt);
  message = *std::move(decoded);
  message.connection = connection;
  return true;
}

void MessageCodec::Damage(Message& message) {
  simulator_.Count("network_damaged");
  if (simulator_.tracing()) simulator_.Trace(absl::StrCat("  damage ", Describe(message)));
  Buffer& frame = message.frames[random_.Below(message.frames.size())];
  if (frame.size() > 0) FlipRandomBit(random_, frame);
}

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#include "common/net/wire.h"

#include <algorithm>
#include <array>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/crc32c.h"
#include "common/base/status_macros.h"
#include "common/net/frame_bytes.h"
#include "common/net/little_endian.h"

namespace covey {
namespace {

constexpr std::array<uint8_t, 8> kFixedPrelude = {'C', 'V', 'E', 'Y', kWireVersion, 0, 0, 0};
constexpr uint8_t kSealedFlag = 1;
constexpr size_t kVersionOffset = 4;
constexpr size_t kFlagsOffset = 5;
constexpr size_t kEnvelopeSizeOffset = 8;
constexpr size_t kLastOffset = 12;

// Numbers of the bodies that data ports exchange (envelope.proto).
constexpr int kFirstDataBody = 40;
constexpr int kLastDataBody = 79;

}  // namespace

// All other bodies arrive by gRPC, or from the process itself.
size_t WireBytes(const Message& message) {
  return kWirePreludeBytes + message.envelope.ByteSizeLong() + FrameBytes(message);
}

bool IsOfDataPlane(const proto::Envelope& envelope) {
  const int body = envelope.body_case();
  return body == proto::Envelope::BODY_NOT_SET || (body >= kFirstDataBody && body <= kLastDataBody);
}

absl::StatusOr<size_t> PrepareHead(const WireLimits& limits, Message& message) {
  if (message.frames.size() > limits.frames) {
    return absl::ResourceExhaustedError(absl::StrCat("message with ", message.frames.size(),
                                                     " frames; at most ", limits.frames,
                                                     " are allowed"));
  }
  message.envelope.clear_frame_bytes();
  for (const Buffer& frame : message.frames) {
    if (frame.size() > limits.frame_bytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "frame of ", frame.size(), " bytes; at most ", limits.frame_bytes, " are allowed"));
    }
    message.envelope.add_frame_bytes(frame.size());
  }
  const size_t envelope_bytes = message.envelope.ByteSizeLong();
  if (envelope_bytes > limits.envelope_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "envelope of ", envelope_bytes, " bytes; at most ", limits.envelope_bytes, " are allowed"));
  }
  return kWirePreludeBytes + envelope_bytes;
}

void WriteHead(const Message& message, std::span<uint8_t> head) {
  COVEY_CHECK(head.size() >= kWirePreludeBytes);
  const std::span<uint8_t> envelope = head.subspan(kWirePreludeBytes);
  COVEY_CHECK(envelope.size() == static_cast<size_t>(message.envelope.GetCachedSize()));
  message.envelope.SerializeWithCachedSizesToArray(envelope.data());
  WritePrelude({.envelope_bytes = static_cast<uint32_t>(envelope.size()), .last = Crc32c(envelope)},
               head);
}

void WritePrelude(const WirePrelude& prelude, std::span<uint8_t> head) {
  COVEY_CHECK(head.size() >= kWirePreludeBytes);
  std::copy(kFixedPrelude.begin(), kFixedPrelude.end(), head.begin());
  if (prelude.sealed) head[kFlagsOffset] = kSealedFlag;
  StoreLittle(prelude.envelope_bytes, &head[kEnvelopeSizeOffset]);
  StoreLittle(prelude.last, &head[kLastOffset]);
}

absl::StatusOr<WirePrelude> ReadPrelude(std::span<const uint8_t> head, const WireLimits& limits) {
  if (head.size() < kWirePreludeBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("head frame of ", head.size(), " bytes is shorter than its prelude"));
  }
  if (!std::equal(kFixedPrelude.begin(), kFixedPrelude.begin() + kVersionOffset, head.begin())) {
    return absl::InvalidArgumentError("head frame does not begin with CVEY");
  }
  if (head[kVersionOffset] != kWireVersion) {
    return absl::InvalidArgumentError(absl::StrCat("wire version ", head[kVersionOffset],
                                                   "; this program speaks ", kWireVersion));
  }
  const auto reserved = head.subspan(kFlagsOffset + 1, kEnvelopeSizeOffset - kFlagsOffset - 1);
  if (head[kFlagsOffset] > kSealedFlag || reserved[0] != 0 || reserved[1] != 0) {
    return absl::InvalidArgumentError("head frame has flags that this program does not know");
  }
  const WirePrelude prelude = {.sealed = head[kFlagsOffset] == kSealedFlag,
                               .envelope_bytes = LoadLittle<uint32_t>(&head[kEnvelopeSizeOffset]),
                               .last = LoadLittle<uint32_t>(&head[kLastOffset])};
  if (prelude.envelope_bytes > limits.envelope_bytes) {
    return absl::InvalidArgumentError(absl::StrCat("envelope of ", prelude.envelope_bytes,
                                                   " bytes; at most ", limits.envelope_bytes,
                                                   " are allowed"));
  }
  return prelude;
}

absl::Status ReadHead(std::span<const uint8_t> head, const WireLimits& limits,
                      proto::Envelope& envelope) {
  COVEY_ASSIGN_OR_RETURN(const WirePrelude prelude, ReadPrelude(head, limits));
  if (prelude.sealed) {
    return absl::FailedPreconditionError(
        "message is sealed, and this process has no keys; secure all processes of a job, or none");
  }
  const std::span<const uint8_t> bytes = head.subspan(kWirePreludeBytes);
  if (prelude.envelope_bytes != bytes.size()) {
    return absl::InvalidArgumentError(absl::StrCat("head frame claims an envelope of ",
                                                   prelude.envelope_bytes, " bytes and has ",
                                                   bytes.size()));
  }
  if (prelude.last != Crc32c(bytes)) {
    return absl::DataLossError("envelope differs from its checksum");
  }
  return ParseEnvelope(bytes, envelope);
}

absl::Status ParseEnvelope(std::span<const uint8_t> bytes, proto::Envelope& envelope) {
  if (!envelope.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return absl::InvalidArgumentError("envelope is not an Envelope");
  }
  if (!IsOfDataPlane(envelope)) {
    return absl::PermissionDeniedError(
        absl::StrCat(BodyName(envelope), " does not travel between data ports"));
  }
  return absl::OkStatus();
}

absl::Status CheckFrames(const Message& message, const WireLimits& limits) {
  const auto& claimed = message.envelope.frame_bytes();
  const size_t frames = message.frames.size();
  if (frames > limits.frames || frames != static_cast<size_t>(claimed.size())) {
    return absl::InvalidArgumentError(absl::StrCat("envelope claims ", claimed.size(),
                                                   " frames and has ", frames, "; at most ",
                                                   limits.frames, " are allowed"));
  }
  for (size_t i = 0; i < frames; ++i) {
    const size_t size = message.frames[i].size();
    if (size > limits.frame_bytes || size != claimed[static_cast<int>(i)]) {
      return absl::InvalidArgumentError(
          absl::StrCat("envelope claims ", claimed[static_cast<int>(i)], " bytes for frame ", i,
                       ", which has ", size, "; at most ", limits.frame_bytes, " are allowed"));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<Buffer>> EncodeMessage(const WireLimits& limits, Message message) {
  COVEY_ASSIGN_OR_RETURN(const size_t head_bytes, PrepareHead(limits, message));
  Buffer head = Buffer::Allocate(head_bytes);
  WriteHead(message, {head.MutableData(), head.size()});
  std::vector<Buffer> frames;
  frames.reserve(1 + message.frames.size());
  frames.push_back(std::move(head));
  for (Buffer& frame : message.frames) frames.push_back(std::move(frame));
  return frames;
}

absl::StatusOr<Message> DecodeMessage(std::span<const Buffer> frames, const WireLimits& limits) {
  if (frames.empty()) return absl::InvalidArgumentError("message without a head frame");
  Message message;
  COVEY_RETURN_IF_ERROR(ReadHead(frames.front().bytes(), limits, message.envelope));
  message.frames.assign(frames.begin() + 1, frames.end());
  COVEY_RETURN_IF_ERROR(CheckFrames(message, limits));
  return message;
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/buffer.h"
#include "common/cluster/limits.h"
#include "common/net/message.h"

namespace covey {

// The bytes of a message. It travels as 1 + n frames, n <= kFramesMax; the carrier keeps frames
// apart and in order. Integers are little endian.
//
//   head frame        0               4         5         6           8              12
//                     +---------------+---------+---------+-----------+--------------+
//                     | 'C' 'V' 'E' 'Y' | version | flags | 0       0 | envelope u32 |
//                     +---------------+---------+---------+-----------+--------------+
//                     | crc32c u32    | envelope: protobuf covey.proto.Envelope …    |
//                     +---------------+----------------------------------------------+
//                    12              16                            16 + envelope bytes
//   tensor frame 1…n  raw elements, exactly envelope.frame_bytes[i - 1] bytes
//
//   version   kWireVersion. A reader refuses every other: fields are added inside the envelope,
//             where Protobuf's own rules apply; the version changes only when this picture does.
//   flags     0, or 1 = sealed, see below. A set bit means "refuse me unless you know me".
//   envelope  number of envelope bytes that follow; nothing may come after them.
//   crc32c    CRC-32C of the envelope bytes, checked on arrival. Those of the tensor frames are
//             in the envelope (frame_checksums): made where the bytes are made and checked where
//             they are used, see frame_checksum.h. A carrier checks neither.
//
// An envelope's body is one of the data plane (numbers 40 to 79 of envelope.proto), or absent. All
// others are refused on arrival: the scheduler's replies come through the control channel, and
// messages between the parts of a process never leave it. So an actor that receives such a body
// knows that its own process has delivered it.
//
// A sealed message has the same frames. The tensor frames and the envelope are encrypted, in place
// of the checksum there is the number of tensor frames, and more fields stand before the envelope:
//
//   head frame        0               4         5         6           8              12
//                     +---------------+---------+---------+-----------+--------------+
//                     | 'C' 'V' 'E' 'Y' | version | flags 1 | 0       0 | envelope u32 |
//                     +---------------+---------+---------+-----------+--------------+
//                     | frames u32    | sender: node u64 | loop u32 | receiver: loop u32 |
//                     +---------------+------------------+----------+--------------------+
//                    12              16                 24         28                   32
//                     | receiver: node u64 | number u64 | tag of each tensor frame: 16 bytes |
//                     +--------------------+------------+------------------------------------+
//                    32                   40           48                  48 + 16 * frames
//                     | tag of the envelope: 16 bytes | envelope, encrypted … |
//                     +-------------------------------+-----------------------+
//
//   number    of the message, from this loop to that loop; each is used once.
//   tags      of AES-128-GCM, whose key and nonces follow from the fields before and from the keys
//             of both nodes (common/security/seal/direction.h, part_cipher.h): the envelope is part
//             0, tensor frame i is part i. The envelope's tag also covers all bytes before it, and
//             so the tags of the tensor frames.
//
// A reader refuses a message whose envelope names another sender or receiver than the head frame,
// or another incarnation than the view does for this node.
//
// Pure. No input makes these functions crash or allocate beyond the limits.
inline constexpr size_t kWirePreludeBytes = 16;
inline constexpr uint8_t kWireVersion = 1;

struct WireLimits {
  size_t envelope_bytes = kDataEnvelopeBytesMax;
  size_t frame_bytes = kFrameBytesMax;
  size_t frames = kFramesMax;
};

// Of the message as it is: its head frame and its tensor frames.
size_t WireBytes(const Message& message);

// Whether bodies like this envelope's may arrive at data ports.
bool IsOfDataPlane(const proto::Envelope& envelope);

// Notes the sizes of `message.frames` in its envelope and returns the size of the head frame.
// RESOURCE_EXHAUSTED: the message is beyond the limits and must not be sent.
absl::StatusOr<size_t> PrepareHead(const WireLimits& limits, Message& message);
// Writes the head frame. Precondition: `head` has the size that PrepareHead returned, and the
// message is unchanged since.
void WriteHead(const Message& message, std::span<uint8_t> head);

// Replaces `envelope` by that of the head frame; unspecified on error. INVALID_ARGUMENT: not a head
// frame of ours; DATA_LOSS: the checksum differs; FAILED_PRECONDITION: it is sealed; or as
// ParseEnvelope.
absl::Status ReadHead(std::span<const uint8_t> head, const WireLimits& limits,
                      proto::Envelope& envelope);
// The parts of ReadHead, for sealed messages. `last` is the field at offset 12.
struct WirePrelude {
  bool sealed = false;
  uint32_t envelope_bytes = 0;
  uint32_t last = 0;
};
void WritePrelude(const WirePrelude& prelude, std::span<uint8_t> head);
// INVALID_ARGUMENT: not a prelude of ours, or it claims an envelope beyond the limits.
absl::StatusOr<WirePrelude> ReadPrelude(std::span<const uint8_t> head, const WireLimits& limits);
// INVALID_ARGUMENT: not an envelope; PERMISSION_DENIED: a body that does not belong here.
absl::Status ParseEnvelope(std::span<const uint8_t> bytes, proto::Envelope& envelope);

// INVALID_ARGUMENT: number or sizes of the frames differ from what the envelope says.
absl::Status CheckFrames(const Message& message, const WireLimits& limits);

// The whole message as buffers, for carriers that keep them; tensor frames are shared, not copied.
absl::StatusOr<std::vector<Buffer>> EncodeMessage(const WireLimits& limits, Message message);
absl::StatusOr<Message> DecodeMessage(std::span<const Buffer> frames, const WireLimits& limits);

}  // namespace covey

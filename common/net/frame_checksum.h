// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "common/base/buffer.h"
#include "common/net/message.h"

namespace covey {

// The checksums of a message's frames (Envelope.frame_checksums): made where a frame's bytes are
// made, checked where they are used, and passed on with the frame. So a bit that flips anywhere in
// between, in a socket, a relay or a waiting buffer, is noticed before it reaches a parameter. The
// head frame has a checksum of its own, which covers the envelope with these checksums (wire.h).
//
// A sender of frames on the data plane must set them: a message with frames and without checksums
// is refused. Code that keeps a frame to send it again keeps its checksum, too.
//
// Pure. Cost: one pass over the bytes, see crc32c.h.

// CRC-32C of the frame's bytes.
uint32_t FrameChecksum(const Buffer& frame);

// Computes the checksums that are missing, those of the last frames. No effect when all frames have
// one.
void SetFrameChecksums(Message& message);
// Adds a frame whose checksum is known. Precondition: the frames before it have checksums.
void AddFrame(Message& message, Buffer frame, uint32_t checksum);

// DATA_LOSS: a frame differs from its checksum, or the number of checksums is not that of the
// frames. OK for a message without frames.
absl::Status CheckFrameChecksums(const Message& message);
// The same for a caller that reads the bytes anyway: `checksum` is called for each frame.
absl::Status CheckFrameChecksums(const Message& message,
                                 absl::FunctionRef<uint32_t(const Buffer&)> checksum);

}  // namespace covey

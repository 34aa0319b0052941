// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "common/base/buffer.h"

namespace covey {

// A message as it has arrived, with nothing checked but its number of frames and their sizes. A
// value; the buffers have no other holder and may be written.
struct SealedMessage {
  Buffer head;
  absl::InlinedVector<Buffer, 1> frames;
  uint64_t connection = 0;  // Message.connection

  size_t bytes() const {
    size_t bytes = head.size();
    for (const Buffer& frame : frames) bytes += frame.size();
    return bytes;
  }
};

}  // namespace covey

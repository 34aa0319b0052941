// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "common/base/buffer.h"
#include "common/net/message.h"

namespace covey {

// Lends frames as a transport over shared memory does, and knows how many have not come back.
// Outlives what it has lent. Not thread-safe.
class FrameLender {
 public:
  Buffer Lend(const Buffer& frame) {
    ++out_;
    return Buffer::Lend(frame.data(), frame.size(), [this, frame] { --out_; });
  }
  // The same message with lent frames.
  Message Lend(Message message) {
    for (Buffer& frame : message.frames) frame = Lend(frame);
    return message;
  }
  // Frames that are still in use.
  size_t out() const { return out_; }

 private:
  size_t out_ = 0;
};

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include "common/net/message.h"

namespace covey {

// Of all tensor frames of the message. Pure.
inline size_t FrameBytes(const Message& message) {
  size_t bytes = 0;
  for (const Buffer& frame : message.frames) bytes += frame.size();
  return bytes;
}

}  // namespace covey

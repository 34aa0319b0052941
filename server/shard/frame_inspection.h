// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>

namespace covey::server {

// What a server has to know of a received gradient before it applies it.
struct FrameInspection {
  uint32_t checksum = 0;   // CRC-32C of the bytes
  bool all_finite = true;  // no element is NaN or infinite
};

// Reads a frame of float32 once, in blocks that stay in the core's cache for the second of the two
// questions. Any alignment of at least 4 bytes. Precondition: whole elements. Pure.
FrameInspection InspectFrame(std::span<const float> elements);

}  // namespace covey::server

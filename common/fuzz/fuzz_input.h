// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "common/base/buffer.h"

namespace covey {

// Inputs of a fuzz target that are not just the bytes of one file. Pure.

inline absl::string_view FuzzText(std::span<const uint8_t> input) {
  return {reinterpret_cast<const char*>(input.data()), input.size()};
}

// An input of several parts, as a message of frames. Each part has its length before it, in two
// bytes, little endian; other bytes may follow. Precondition: parts are shorter than 64 KiB.
std::string JoinFuzzParts(const std::vector<std::string>& parts);
// Removes the next part from the front of `rest`, which may be any bytes: a length beyond the end
// means up to the end.
std::span<const uint8_t> TakeFuzzPart(std::span<const uint8_t>& rest);
// All parts as frames, up to the first `parts_max`.
std::vector<Buffer> FuzzFrames(std::span<const uint8_t> input, size_t parts_max);

}  // namespace covey

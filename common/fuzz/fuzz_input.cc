// SPDX-License-Identifier: Apache-2.0
#include "common/fuzz/fuzz_input.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace covey {

std::string JoinFuzzParts(const std::vector<std::string>& parts) {
  std::string input;
  for (const std::string& part : parts) {
    COVEY_CHECK(part.size() < 1 << 16);
    input += static_cast<char>(part.size() & 0xff);
    input += static_cast<char>(part.size() >> 8);
    input += part;
  }
  return input;
}

std::span<const uint8_t> TakeFuzzPart(std::span<const uint8_t>& rest) {
  if (rest.size() < 2) return std::exchange(rest, {});
  const size_t length = std::min<size_t>(rest[0] | rest[1] << 8, rest.size() - 2);
  const std::span<const uint8_t> part = rest.subspan(2, length);
  rest = rest.subspan(2 + length);
  return part;
}

std::vector<Buffer> FuzzFrames(std::span<const uint8_t> input, size_t parts_max) {
  std::vector<Buffer> frames;
  while (frames.size() < parts_max && !input.empty()) {
    frames.push_back(Buffer::CopyOf(TakeFuzzPart(input)));
  }
  return frames;
}

}  // namespace covey

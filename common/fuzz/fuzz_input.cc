// SPDX-License-Identifier: Apache-2.0
#include "common/fuzz/fuzz_input.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"

namespace covey {

std::string JoinFuzzParts(const std::vector<std::string>& parts) {
  std::string input;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (i + 1 < parts.size()) {
      COVEY_CHECK(parts[i].size() < 1 << 16);
      input += static_cast<char>(parts[i].size() & 0xff);
      input += static_cast<char>(parts[i].size() >> 8);
    }
    input += parts[i];
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
  while (frames.size() + 1 < parts_max && input.size() >= 2 &&
         (input[0] | input[1] << 8) <= static_cast<int>(input.size() - 2)) {
    frames.push_back(Buffer::CopyOf(TakeFuzzPart(input)));
  }
  frames.push_back(Buffer::CopyOf(input));
  return frames;
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/fuzz/mutation.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "common/base/check.h"

namespace covey {
namespace {

// Where sizes, counts and offsets go wrong; of each the lowest 1, 2, 4 or 8 bytes.
constexpr uint64_t kEdges[] = {0,
                               1,
                               2,
                               0x7f,
                               0x80,
                               0xff,
                               0x7fff,
                               0xffff,
                               0x7fffffff,
                               0x80000000,
                               0xffffffff,
                               0x7fffffffffffffff,
                               0x8000000000000000,
                               0xffffffffffffffff};

const std::string& AnyOf(std::span<const std::string> inputs, Random& random) {
  return inputs[random.Below(inputs.size())];
}

// A range of `text`, of up to 16 bytes as a rule.
std::string RangeOf(const std::string& text, Random& random) {
  if (text.empty()) return text;
  const size_t place = random.Below(text.size());
  const size_t length_max = random.Chance(0.2) ? text.size() : 16;
  return text.substr(place, 1 + random.Below(length_max));
}

void Change(std::span<const std::string> inputs, Random& random, std::string& text) {
  const size_t place = random.Below(text.size() + 1);
  const auto at_place = [&] { return place < text.size() ? &text[place] : nullptr; };
  switch (random.Below(9)) {
    case 0:
      if (char* const byte = at_place()) *byte = static_cast<char>(random.Below(256));
      break;
    case 1:
      if (char* const byte = at_place()) *byte = static_cast<char>(*byte ^ 1 << random.Below(8));
      break;
    case 2:
      // A number that is off by one, or one digit for another.
      if (char* const byte = at_place()) {
        *byte =
            static_cast<char>(*byte >= '0' && *byte <= '9' ? '0' + random.Below(10)
                                                           : *byte + (random.Chance(0.5) ? 1 : -1));
      }
      break;
    case 3:
      text.erase(place, 1 + random.Below(16));
      break;
    case 4:
      text.insert(place, RangeOf(text, random));
      break;
    case 5:
      text.insert(place, RangeOf(AnyOf(inputs, random), random));
      break;
    case 6: {
      const std::string range = RangeOf(AnyOf(inputs, random), random);
      text.replace(place, range.size(), range);
      break;
    }
    case 7: {
      const uint64_t edge = kEdges[random.Below(std::size(kEdges))];
      const size_t width = size_t{1} << random.Below(4);
      std::string bytes;
      for (size_t i = 0; i < width; ++i) bytes += static_cast<char>(edge >> (8 * i));
      text.replace(place, bytes.size(), bytes);
      break;
    }
    case 8:
      if (random.Chance(0.2)) text.resize(place);
      break;
  }
}

}  // namespace

std::string Mutated(std::span<const std::string> inputs, Random& random) {
  COVEY_CHECK(!inputs.empty());
  std::string text = AnyOf(inputs, random);
  for (uint64_t left = 1 + random.Below(4); left > 0; --left) Change(inputs, random, text);
  return text;
}

}  // namespace covey

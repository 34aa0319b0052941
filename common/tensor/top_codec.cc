// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/top_codec.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"
#include "common/tensor/scaled_codec.h"
#include "common/tensor/wire_format.h"

namespace covey {
namespace {

constexpr size_t kKeptMax = KeptOfBlock(kBlockElements);
constexpr size_t kScaleBytes = sizeof(float);

}  // namespace

void EncodeTopBlock(std::span<const float> values, std::span<uint8_t> bytes) {
  const size_t count = values.size();
  const size_t kept = KeptOfBlock(count);
  COVEY_CHECK(count <= kBlockElements && bytes.size() == kScaleBytes + 2 * kept);
  // In the order of magnitudes, and of equal ones from the last to the first.
  uint64_t order[kBlockElements];
  for (size_t i = 0; i < count; ++i) {
    order[i] = uint64_t{BitsOf(values[i]) & ~kFloatSign} << 8 | (kBlockElements - 1 - i);
  }
  std::nth_element(order, order + kept, order + count, std::greater<>());
  uint8_t* const places = bytes.data() + kScaleBytes;
  for (size_t i = 0; i < kept; ++i) {
    places[i] = static_cast<uint8_t>(kBlockElements - 1 - (order[i] & 0xff));
  }
  std::sort(places, places + kept);
  float largest[kKeptMax];
  for (size_t i = 0; i < kept; ++i) largest[i] = values[places[i]];
  uint8_t block[kScaleBytes + kKeptMax];
  EncodeFloat8Block(std::span(largest, kept), std::span(block, kScaleBytes + kept));
  std::memcpy(bytes.data(), block, kScaleBytes);
  std::memcpy(places + kept, block + kScaleBytes, kept);
}

void DecodeTopBlock(std::span<const uint8_t> bytes, std::span<float> values) {
  const size_t count = values.size();
  const size_t kept = KeptOfBlock(count);
  COVEY_CHECK(count <= kBlockElements && bytes.size() == kScaleBytes + 2 * kept);
  uint8_t block[kScaleBytes + kKeptMax];
  std::memcpy(block, bytes.data(), kScaleBytes);
  std::memcpy(block + kScaleBytes, bytes.data() + kScaleBytes + kept, kept);
  float largest[kKeptMax];
  DecodeFloat8Block(std::span(block, kScaleBytes + kept), std::span(largest, kept));
  float scale = 0;
  std::memcpy(&scale, block, sizeof(scale));
  // NaN where an element was not finite.
  std::fill(values.begin(), values.end(), 0 * scale);
  for (size_t i = 0; i < kept; ++i) {
    const size_t place = bytes[kScaleBytes + i];
    if (place < count) values[place] = largest[i];
  }
}

}  // namespace covey

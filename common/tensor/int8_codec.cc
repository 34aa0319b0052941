// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/int8_codec.h"

#include <cstddef>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"
#include "common/tensor/kernel_macros.h"

namespace covey {
namespace {

// Scale of a block: the largest magnitude over 127; NaN when an element is not finite.
COVEY_KERNEL float ScaleOf(const float* __restrict values, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = BitsOf(values[i]) & ~kFloatSign;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest >= kFloatInfinity) return std::numeric_limits<float>::quiet_NaN();
  return FloatOf(largest) / 127.0f;
}

// Precondition: scale > 0.
COVEY_KERNEL void Quantize(const float* __restrict values, size_t count, float scale,
                           int8_t* __restrict out) {
  // Adding and subtracting 1.5 * 2^23 rounds to nearest even.
  constexpr float kRound = 12582912.0f;
  for (size_t i = 0; i < count; ++i) {
    float steps = values[i] / scale;
    steps = steps > 127.0f ? 127.0f : steps;
    steps = steps < -127.0f ? -127.0f : steps;
    out[i] = static_cast<int8_t>(static_cast<int32_t>((steps + kRound) - kRound));
  }
}

COVEY_KERNEL void Dequantize(const int8_t* __restrict in, size_t count, float scale,
                             float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(in[i]) * scale;
}

}  // namespace

void EncodeInt8Block(std::span<const float> values, std::span<uint8_t> bytes) {
  COVEY_CHECK(bytes.size() == sizeof(float) + values.size());
  const float scale = ScaleOf(values.data(), values.size());
  std::memcpy(bytes.data(), &scale, sizeof(scale));
  int8_t* const out = reinterpret_cast<int8_t*>(bytes.data() + sizeof(scale));
  if (scale > 0) {
    Quantize(values.data(), values.size(), scale, out);
  } else {
    std::memset(out, 0, values.size());
  }
}

void DecodeInt8Block(std::span<const uint8_t> bytes, std::span<float> values) {
  COVEY_CHECK(bytes.size() == sizeof(float) + values.size());
  float scale = 0;
  std::memcpy(&scale, bytes.data(), sizeof(scale));
  Dequantize(reinterpret_cast<const int8_t*>(bytes.data() + sizeof(scale)), values.size(), scale,
             values.data());
}

}  // namespace covey

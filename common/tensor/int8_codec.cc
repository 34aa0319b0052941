// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/int8_codec.h"

#include <cstddef>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/tensor/int8_codec.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

// Scale of a block: the largest magnitude over 127; NaN when an element is not finite.
float ScaleOf(const float* __restrict values, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = BitsOf(values[i]) & ~kFloatSign;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest >= kFloatInfinity) return std::numeric_limits<float>::quiet_NaN();
  return FloatOf(largest) / 127.0f;
}

// Precondition: scale > 0.
void Quantize(const float* __restrict values, size_t count, float scale, int8_t* __restrict out) {
  // Adding and subtracting 1.5 * 2^23 rounds to nearest even.
  constexpr float kRound = 12582912.0f;
  for (size_t i = 0; i < count; ++i) {
    float steps = values[i] / scale;
    steps = steps > 127.0f ? 127.0f : steps;
    steps = steps < -127.0f ? -127.0f : steps;
    out[i] = static_cast<int8_t>(static_cast<int32_t>((steps + kRound) - kRound));
  }
}

void Dequantize(const int8_t* __restrict in, size_t count, float scale, float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(in[i]) * scale;
}

void EncodeBlock(const float* values, size_t count, uint8_t* bytes) {
  const float scale = ScaleOf(values, count);
  std::memcpy(bytes, &scale, sizeof(scale));
  int8_t* const out = reinterpret_cast<int8_t*>(bytes + sizeof(scale));
  if (scale > 0) {
    Quantize(values, count, scale, out);
  } else {
    std::memset(out, 0, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(EncodeBlock);
HWY_EXPORT(Dequantize);

}  // namespace

void EncodeInt8Block(std::span<const float> values, std::span<uint8_t> bytes) {
  COVEY_CHECK(bytes.size() == sizeof(float) + values.size());
  HWY_DYNAMIC_DISPATCH(EncodeBlock)(values.data(), values.size(), bytes.data());
}

void DecodeInt8Block(std::span<const uint8_t> bytes, std::span<float> values) {
  COVEY_CHECK(bytes.size() == sizeof(float) + values.size());
  float scale = 0;
  std::memcpy(&scale, bytes.data(), sizeof(scale));
  HWY_DYNAMIC_DISPATCH(Dequantize)
  (reinterpret_cast<const int8_t*>(bytes.data() + sizeof(scale)), values.size(), scale,
   values.data());
}

}  // namespace covey
#endif  // HWY_ONCE

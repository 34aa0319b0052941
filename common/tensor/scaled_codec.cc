// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/scaled_codec.h"

#include <cstddef>
#include <cstring>
#include <limits>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"
#include "common/tensor/half_codec.h"
#include "common/tensor/wire_format.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/tensor/scaled_codec.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

// How an element, divided by the scale, is rounded: the largest lies in [2^top, 2^(top + 1)), and
// `bits_off` of the 23 bits of a float's fraction are rounded off.
struct Element {
  uint32_t top;
  uint32_t bits_off;
};
constexpr Element kHalf = {.top = 14, .bits_off = 13};
constexpr Element kFloat8 = {.top = 7, .bits_off = 20};

// A power of two; 0 if all elements are 0, NaN if one is not finite. Once the largest magnitude is
// rounded it has the same scale, so that a block that was decoded has the same bytes again.
float ScaleOf(const float* __restrict values, size_t count, const Element& element) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = BitsOf(values[i]) & ~kFloatSign;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest == 0) return 0;
  if (largest >= kFloatInfinity) return std::numeric_limits<float>::quiet_NaN();
  const uint32_t exponent = (largest + (uint32_t{1} << (element.bits_off - 1))) >> 23;
  return FloatOf((exponent > element.top ? exponent - element.top : 1) << 23);
}

void Multiply(const float* __restrict in, size_t count, float factor, float* __restrict out) {
  for (size_t i = 0; i < count; ++i) out[i] = in[i] * factor;
}

// Precondition: the magnitude is below 2^8.
inline uint8_t Float8Of(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t magnitude = bits & ~kFloatSign;
  // Adding 2^14 aligns a subnormal's last bit, 2^-9, with a float's; the addition rounds.
  const uint32_t subnormal = BitsOf(FloatOf(magnitude) + 16384.0f) - BitsOf(16384.0f);
  const uint32_t odd = (magnitude >> 20) & 1;
  const uint32_t normal = (magnitude - (uint32_t{120} << 23) + 0x7ffff + odd) >> 20;
  const uint32_t rounded = magnitude < (uint32_t{121} << 23) ? subnormal : normal;
  return static_cast<uint8_t>((bits & kFloatSign) >> 24 | rounded);
}

inline float FloatOfFloat8(uint8_t byte) {
  const uint32_t sign = static_cast<uint32_t>(byte & 0x80) << 24;
  const uint32_t magnitude = static_cast<uint32_t>(byte & 0x7f) << 20;
  const uint32_t normal = magnitude + (uint32_t{120} << 23);
  // 2^-6 and the fraction, less 2^-6: exact.
  const uint32_t subnormal =
      BitsOf(FloatOf(magnitude + (uint32_t{121} << 23)) - FloatOf(uint32_t{121} << 23));
  uint32_t bits = (byte & 0x78) == 0 ? subnormal : normal;
  bits = (byte & 0x7f) == 0x7f ? (kFloatInfinity | uint32_t{1} << 22) : bits;
  return FloatOf(sign | bits);
}

void Float8sOf(const float* __restrict values, size_t count, float factor,
               uint8_t* __restrict out) {
  for (size_t i = 0; i < count; ++i) out[i] = Float8Of(values[i] * factor);
}

void FloatsOf(const uint8_t* __restrict in, size_t count, float scale, float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = FloatOfFloat8(in[i]) * scale;
}

// Writes the scale, and every element over it to `scaled`.
void ScaleBlock(const float* values, size_t count, float* scaled, uint8_t* bytes) {
  const float scale = ScaleOf(values, count, kHalf);
  std::memcpy(bytes, &scale, sizeof(scale));
  if (scale > 0) {
    Multiply(values, count, 1 / scale, scaled);
  } else {
    std::memset(scaled, 0, count * sizeof(float));
  }
}

void EncodeFloat8s(const float* values, size_t count, uint8_t* bytes) {
  const float scale = ScaleOf(values, count, kFloat8);
  std::memcpy(bytes, &scale, sizeof(scale));
  if (scale > 0) {
    Float8sOf(values, count, 1 / scale, bytes + sizeof(scale));
  } else {
    std::memset(bytes + sizeof(scale), 0, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(Multiply);
HWY_EXPORT(ScaleBlock);
HWY_EXPORT(EncodeFloat8s);
HWY_EXPORT(FloatsOf);

float ReadScale(std::span<const uint8_t> bytes) {
  float scale = 0;
  std::memcpy(&scale, bytes.data(), sizeof(scale));
  return scale;
}

}  // namespace

void EncodeScaledHalfBlock(std::span<const float> values, std::span<uint8_t> bytes) {
  const size_t count = values.size();
  COVEY_CHECK(count <= kBlockElements && bytes.size() == sizeof(float) + 2 * count);
  alignas(64) float scaled[kBlockElements];
  alignas(64) uint16_t halves[kBlockElements];
  HWY_DYNAMIC_DISPATCH(ScaleBlock)(values.data(), count, scaled, bytes.data());
  EncodeHalf(std::span(scaled, count), std::span(halves, count));
  std::memcpy(bytes.data() + sizeof(float), halves, 2 * count);
}

void DecodeScaledHalfBlock(std::span<const uint8_t> bytes, std::span<float> values) {
  const size_t count = values.size();
  COVEY_CHECK(count <= kBlockElements && bytes.size() == sizeof(float) + 2 * count);
  alignas(64) float scaled[kBlockElements];
  alignas(64) uint16_t halves[kBlockElements];
  std::memcpy(halves, bytes.data() + sizeof(float), 2 * count);
  DecodeHalf(std::span(halves, count), std::span(scaled, count));
  HWY_DYNAMIC_DISPATCH(Multiply)(scaled, count, ReadScale(bytes), values.data());
}

void EncodeFloat8Block(std::span<const float> values, std::span<uint8_t> bytes) {
  COVEY_CHECK(bytes.size() == sizeof(float) + values.size());
  HWY_DYNAMIC_DISPATCH(EncodeFloat8s)(values.data(), values.size(), bytes.data());
}

void DecodeFloat8Block(std::span<const uint8_t> bytes, std::span<float> values) {
  COVEY_CHECK(bytes.size() == sizeof(float) + values.size());
  HWY_DYNAMIC_DISPATCH(FloatsOf)
  (bytes.data() + sizeof(float), values.size(), ReadScale(bytes), values.data());
}

}  // namespace covey
#endif  // HWY_ONCE

// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/half_codec.h"

#include <cstddef>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/tensor/half_codec.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

// By integer arithmetic; the bits are those of the processor's own instruction.
inline uint16_t HalfOf(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = (bits & kFloatSign) >> 16;
  const uint32_t magnitude = bits & ~kFloatSign;
  // Adding 0.5 aligns a subnormal half's last bit with a float's; the addition rounds.
  const uint32_t subnormal = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
  const uint32_t odd = (magnitude >> 13) & 1;
  const uint32_t normal = (magnitude - (uint32_t{112} << 23) + 0xfff + odd) >> 13;
  const uint32_t quiet = 0x7e00 | ((magnitude >> 13) & 0x1ff);
  uint32_t half = magnitude < (uint32_t{113} << 23) ? subnormal : normal;
  half = magnitude >= (uint32_t{143} << 23) ? 0x7c00 : half;
  half = magnitude > kFloatInfinity ? quiet : half;
  return static_cast<uint16_t>(sign | half);
}

inline float FloatOfHalf(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t magnitude = static_cast<uint32_t>(half & 0x7fff) << 13;
  const uint32_t normal = magnitude + (uint32_t{112} << 23);
  // 2^-14 and the fraction, less 2^-14: exact.
  const uint32_t subnormal =
      BitsOf(FloatOf(magnitude + (uint32_t{113} << 23)) - FloatOf(uint32_t{113} << 23));
  const uint32_t special = magnitude + (uint32_t{224} << 23);
  const uint32_t quiet = (half & 0x3ff) != 0 ? uint32_t{1} << 22 : 0;
  uint32_t bits = (half & 0x7c00) == 0 ? subnormal : normal;
  bits = (half & 0x7c00) == 0x7c00 ? (special | quiet) : bits;
  return FloatOf(sign | bits);
}

// How many of `count` elements, from the first on, the processor's own instructions encode and
// decode. None where they give other bits: x86 rounds halves by F16C, which comes with AVX2.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
size_t EncodeNatively(const float* values, size_t count, uint16_t* out) {
  const hwy::HWY_NAMESPACE::ScalableTag<float> floats;
  const hwy::HWY_NAMESPACE::Rebind<hwy::float16_t, decltype(floats)> halves;
  const size_t step = Lanes(floats);
  size_t i = 0;
  for (; i + step <= count; i += step) {
    StoreU(DemoteTo(halves, LoadU(floats, values + i)), halves,
           reinterpret_cast<hwy::float16_t*>(out + i));
  }
  return i;
}

size_t DecodeNatively(const uint16_t* in, size_t count, float* values) {
  const hwy::HWY_NAMESPACE::ScalableTag<float> floats;
  const hwy::HWY_NAMESPACE::Rebind<hwy::float16_t, decltype(floats)> halves;
  const size_t step = Lanes(floats);
  size_t i = 0;
  for (; i + step <= count; i += step) {
    StoreU(PromoteTo(floats, LoadU(halves, reinterpret_cast<const hwy::float16_t*>(in + i))),
           floats, values + i);
  }
  return i;
}
#else
size_t EncodeNatively(const float*, size_t, uint16_t*) { return 0; }
size_t DecodeNatively(const uint16_t*, size_t, float*) { return 0; }
#endif

void EncodeAll(const float* __restrict values, size_t count, uint16_t* __restrict out) {
  for (size_t i = EncodeNatively(values, count, out); i < count; ++i) out[i] = HalfOf(values[i]);
}

void DecodeAll(const uint16_t* __restrict in, size_t count, float* __restrict values) {
  for (size_t i = DecodeNatively(in, count, values); i < count; ++i) values[i] = FloatOfHalf(in[i]);
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(EncodeAll);
HWY_EXPORT(DecodeAll);

}  // namespace

void EncodeHalf(std::span<const float> values, std::span<uint16_t> halves) {
  COVEY_CHECK(values.size() == halves.size());
  HWY_DYNAMIC_DISPATCH(EncodeAll)(values.data(), values.size(), halves.data());
}

void DecodeHalf(std::span<const uint16_t> halves, std::span<float> values) {
  COVEY_CHECK(values.size() == halves.size());
  HWY_DYNAMIC_DISPATCH(DecodeAll)(halves.data(), halves.size(), values.data());
}

}  // namespace covey
#endif  // HWY_ONCE

// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/half_codec.h"

#include <cstddef>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"
#include "common/tensor/kernel_macros.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define COVEY_F16C 1
#endif

namespace covey {
namespace {

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

COVEY_KERNEL void EncodePortably(const float* __restrict values, size_t count,
                                 uint16_t* __restrict out) {
  for (size_t i = 0; i < count; ++i) out[i] = HalfOf(values[i]);
}

COVEY_KERNEL void DecodePortably(const uint16_t* __restrict in, size_t count,
                                 float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = FloatOfHalf(in[i]);
}

#ifdef COVEY_F16C
__attribute__((target("avx,f16c"))) void EncodeByF16c(const float* values, size_t count,
                                                      uint16_t* out) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
  }
  for (; i < count; ++i) out[i] = HalfOf(values[i]);
}

__attribute__((target("avx,f16c"))) void DecodeByF16c(const uint16_t* in, size_t count,
                                                      float* values) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + i));
    _mm256_storeu_ps(values + i, _mm256_cvtph_ps(halves));
  }
  for (; i < count; ++i) values[i] = FloatOfHalf(in[i]);
}

bool HasF16c() {
  static const bool has = __builtin_cpu_supports("avx") && __builtin_cpu_supports("f16c");
  return has;
}
#endif

}  // namespace

void EncodeHalf(std::span<const float> values, std::span<uint16_t> halves) {
  COVEY_CHECK(values.size() == halves.size());
#ifdef COVEY_F16C
  if (HasF16c()) {
    EncodeByF16c(values.data(), values.size(), halves.data());
    return;
  }
#endif
  EncodePortably(values.data(), values.size(), halves.data());
}

void DecodeHalf(std::span<const uint16_t> halves, std::span<float> values) {
  COVEY_CHECK(values.size() == halves.size());
#ifdef COVEY_F16C
  if (HasF16c()) {
    DecodeByF16c(halves.data(), halves.size(), values.data());
    return;
  }
#endif
  DecodePortably(halves.data(), halves.size(), values.data());
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/stochastic_codec.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/tensor/stochastic_codec.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

// 16 bits for an element: the finalizer of a 32-bit hash (lowbias32, Wellons 2018), into which the
// stream's other half enters between its two products.
inline uint32_t RandomBits(uint64_t stream, uint32_t element) {
  uint32_t x = static_cast<uint32_t>(stream) + element * 0x9e3779b9;
  x = (x ^ (x >> 16)) * 0x7feb352d;
  x += static_cast<uint32_t>(stream >> 32);
  x = (x ^ (x >> 15)) * 0x846ca68b;
  return x >> 16;
}

inline uint16_t BfloatOf(float value, uint32_t random) {
  const uint32_t bits = BitsOf(value);
  const uint32_t rounded = (bits + random) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & ~kFloatSign) > kFloatInfinity ? quiet : rounded);
}

inline uint16_t HalfOf(float value, uint32_t random) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = (bits & kFloatSign) >> 16;
  const uint32_t magnitude = bits & ~kFloatSign;
  const uint32_t normal = (magnitude - (uint32_t{112} << 23) + (random >> 3)) >> 13;
  // In units of 2^-40. Larger ones are cut off, so that the conversion is defined.
  const float small = FloatOf(std::min(magnitude, uint32_t{113} << 23)) * 0x1p40f;
  const uint32_t subnormal = (static_cast<uint32_t>(static_cast<int32_t>(small)) + random) >> 16;
  const uint32_t quiet = 0x7e00 | ((magnitude >> 13) & 0x1ff);
  uint32_t half = magnitude < (uint32_t{113} << 23) ? subnormal : normal;
  half = magnitude >= (uint32_t{143} << 23) ? 0x7c00 : half;
  half = magnitude > kFloatInfinity ? quiet : half;
  return static_cast<uint16_t>(sign | half);
}

void EncodeBfloats(const float* __restrict values, size_t first, size_t count, uint64_t stream,
                   uint16_t* __restrict out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = BfloatOf(values[i], RandomBits(stream, static_cast<uint32_t>(first + i)));
  }
}

void EncodeHalves(const float* __restrict values, size_t first, size_t count, uint64_t stream,
                  uint16_t* __restrict out) {
  for (size_t i = 0; i < count; ++i) {
    out[i] = HalfOf(values[i], RandomBits(stream, static_cast<uint32_t>(first + i)));
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(EncodeBfloats);
HWY_EXPORT(EncodeHalves);

// So that the words stay in the core's cache.
constexpr size_t kChunk = 256;

}  // namespace

void EncodeStochastic(WireFormat format, uint64_t stream, std::span<const float> values,
                      std::span<uint8_t> bytes) {
  COVEY_CHECK(format == WireFormat::kFloat16 || format == WireFormat::kBfloat16);
  COVEY_CHECK(bytes.size() == EncodedBytes(format, values.size()));
  const auto encode = format == WireFormat::kFloat16 ? HWY_DYNAMIC_DISPATCH(EncodeHalves)
                                                     : HWY_DYNAMIC_DISPATCH(EncodeBfloats);
  alignas(64) uint16_t words[kChunk];
  for (size_t first = 0; first < values.size(); first += kChunk) {
    const size_t count = std::min(kChunk, values.size() - first);
    encode(values.data() + first, first, count, stream, words);
    std::memcpy(bytes.data() + 2 * first, words, 2 * count);
  }
}

}  // namespace covey
#endif  // HWY_ONCE

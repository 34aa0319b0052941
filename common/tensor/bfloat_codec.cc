// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/bfloat_codec.h"

#include <cstddef>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/tensor/bfloat_codec.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

void EncodeAll(const float* __restrict values, size_t count, uint16_t* __restrict out) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = BitsOf(values[i]);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40;
    out[i] = static_cast<uint16_t>((bits & ~kFloatSign) > kFloatInfinity ? quiet : rounded);
  }
}

void DecodeAll(const uint16_t* __restrict in, size_t count, float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = FloatOf(static_cast<uint32_t>(in[i]) << 16);
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

void EncodeBfloat(std::span<const float> values, std::span<uint16_t> bfloats) {
  COVEY_CHECK(values.size() == bfloats.size());
  HWY_DYNAMIC_DISPATCH(EncodeAll)(values.data(), values.size(), bfloats.data());
}

void DecodeBfloat(std::span<const uint16_t> bfloats, std::span<float> values) {
  COVEY_CHECK(values.size() == bfloats.size());
  HWY_DYNAMIC_DISPATCH(DecodeAll)(bfloats.data(), bfloats.size(), values.data());
}

}  // namespace covey
#endif  // HWY_ONCE

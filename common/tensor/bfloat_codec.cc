// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/bfloat_codec.h"

#include <cstddef>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"
#include "common/tensor/kernel_macros.h"

namespace covey {
namespace {

COVEY_KERNEL void EncodeAll(const float* __restrict values, size_t count,
                            uint16_t* __restrict out) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = BitsOf(values[i]);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40;
    out[i] = static_cast<uint16_t>((bits & ~kFloatSign) > kFloatInfinity ? quiet : rounded);
  }
}

COVEY_KERNEL void DecodeAll(const uint16_t* __restrict in, size_t count, float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = FloatOf(static_cast<uint32_t>(in[i]) << 16);
}

}  // namespace

void EncodeBfloat(std::span<const float> values, std::span<uint16_t> bfloats) {
  COVEY_CHECK(values.size() == bfloats.size());
  EncodeAll(values.data(), values.size(), bfloats.data());
}

void DecodeBfloat(std::span<const uint16_t> bfloats, std::span<float> values) {
  COVEY_CHECK(values.size() == bfloats.size());
  DecodeAll(bfloats.data(), bfloats.size(), values.data());
}

}  // namespace covey

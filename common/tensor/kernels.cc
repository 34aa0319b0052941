// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>

#include "common/base/check.h"

#if defined(__x86_64__) && defined(__GNUC__)
#include <immintrin.h>
#define COVEY_F16C 1
#endif

// The compiler makes one version of each kernel per instruction set, and the loader picks the
// widest that the processor has. Not under sanitizers: they instrument the loader's choice, which
// runs before they are initialized.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define COVEY_KERNEL __attribute__((target_clones("avx2", "default")))
#else
#define COVEY_KERNEL
#endif

namespace covey {
namespace {

// Codecs work on this many elements at a time, so that they stay in the core's cache. One block of
// kInt8Block.
constexpr size_t kChunk = kInt8BlockElements;

constexpr uint32_t kSign = 0x80000000;
constexpr uint32_t kInfinity = 0x7f800000;

uint32_t BitsOf(float value) { return std::bit_cast<uint32_t>(value); }
float FloatOf(uint32_t bits) { return std::bit_cast<float>(bits); }

// Binary16 by integer arithmetic, one rounding to nearest even; a NaN keeps its sign and the upper
// bits of its payload and becomes quiet, as the processor's own instruction does it.
inline uint16_t HalfOf(float value) {
  const uint32_t bits = BitsOf(value);
  const uint32_t sign = (bits & kSign) >> 16;
  const uint32_t magnitude = bits & ~kSign;
  // Adding 0.5 aligns a subnormal half's last bit with a float's; the addition rounds.
  const uint32_t subnormal = BitsOf(FloatOf(magnitude) + 0.5f) - BitsOf(0.5f);
  const uint32_t odd = (magnitude >> 13) & 1;
  const uint32_t normal = (magnitude - (uint32_t{112} << 23) + 0xfff + odd) >> 13;
  const uint32_t quiet = 0x7e00 | ((magnitude >> 13) & 0x1ff);
  uint32_t half = magnitude < (uint32_t{113} << 23) ? subnormal : normal;
  half = magnitude >= (uint32_t{143} << 23) ? 0x7c00 : half;
  half = magnitude > kInfinity ? quiet : half;
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

COVEY_KERNEL void EncodeHalf(const float* __restrict values, size_t count,
                             uint16_t* __restrict out) {
  for (size_t i = 0; i < count; ++i) out[i] = HalfOf(values[i]);
}

COVEY_KERNEL void DecodeHalf(const uint16_t* __restrict in, size_t count,
                             float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = FloatOfHalf(in[i]);
}

#ifdef COVEY_F16C
__attribute__((target("avx,f16c"))) void EncodeHalfF16c(const float* values, size_t count,
                                                        uint16_t* out) {
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(values + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
  }
  for (; i < count; ++i) out[i] = HalfOf(values[i]);
}

__attribute__((target("avx,f16c"))) void DecodeHalfF16c(const uint16_t* in, size_t count,
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

COVEY_KERNEL void EncodeBfloat(const float* __restrict values, size_t count,
                               uint16_t* __restrict out) {
  for (size_t i = 0; i < count; ++i) {
    const uint32_t bits = BitsOf(values[i]);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40;
    out[i] = static_cast<uint16_t>((bits & ~kSign) > kInfinity ? quiet : rounded);
  }
}

COVEY_KERNEL void DecodeBfloat(const uint16_t* __restrict in, size_t count,
                               float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = FloatOf(static_cast<uint32_t>(in[i]) << 16);
}

// Scale of a block: the largest magnitude over 127; NaN when an element is not finite.
COVEY_KERNEL float ScaleOf(const float* __restrict values, size_t count) {
  uint32_t largest = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint32_t magnitude = BitsOf(values[i]) & ~kSign;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest >= kInfinity) return std::numeric_limits<float>::quiet_NaN();
  return FloatOf(largest) / 127.0f;
}

// Precondition: scale > 0.
COVEY_KERNEL void Quantise(const float* __restrict values, size_t count, float scale,
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

COVEY_KERNEL void Dequantise(const int8_t* __restrict in, size_t count, float scale,
                             float* __restrict values) {
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(in[i]) * scale;
}

COVEY_KERNEL void KeepLoss(const float* __restrict wanted, const float* __restrict sent,
                           size_t count, float* __restrict residual) {
  for (size_t i = 0; i < count; ++i) {
    const float loss = wanted[i] - sent[i];
    residual[i] = (BitsOf(loss) & ~kSign) < kInfinity ? loss : 0.0f;
  }
}

COVEY_KERNEL void AddArrays(float* __restrict sum, const float* __restrict x, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = x[i] + sum[i];
}

// One chunk of at most kChunk elements.
void EncodeChunk(WireFormat format, const float* values, size_t count, uint8_t* bytes) {
  alignas(64) uint16_t halves[kChunk];
  switch (format) {
    case WireFormat::kFloat32:
      std::memcpy(bytes, values, 4 * count);
      return;
    case WireFormat::kFloat16:
#ifdef COVEY_F16C
      if (HasF16c()) {
        EncodeHalfF16c(values, count, halves);
        std::memcpy(bytes, halves, 2 * count);
        return;
      }
#endif
      EncodeHalf(values, count, halves);
      std::memcpy(bytes, halves, 2 * count);
      return;
    case WireFormat::kBfloat16:
      EncodeBfloat(values, count, halves);
      std::memcpy(bytes, halves, 2 * count);
      return;
    case WireFormat::kInt8Block: {
      const float scale = ScaleOf(values, count);
      std::memcpy(bytes, &scale, sizeof(scale));
      int8_t* const out = reinterpret_cast<int8_t*>(bytes + sizeof(scale));
      if (scale > 0) {
        Quantise(values, count, scale, out);
      } else {
        std::memset(out, 0, count);
      }
      return;
    }
  }
}

void DecodeChunk(WireFormat format, const uint8_t* bytes, size_t count, float* values) {
  alignas(64) uint16_t halves[kChunk];
  switch (format) {
    case WireFormat::kFloat32:
      std::memcpy(values, bytes, 4 * count);
      return;
    case WireFormat::kFloat16:
      std::memcpy(halves, bytes, 2 * count);
#ifdef COVEY_F16C
      if (HasF16c()) {
        DecodeHalfF16c(halves, count, values);
        return;
      }
#endif
      DecodeHalf(halves, count, values);
      return;
    case WireFormat::kBfloat16:
      std::memcpy(halves, bytes, 2 * count);
      DecodeBfloat(halves, count, values);
      return;
    case WireFormat::kInt8Block: {
      float scale = 0;
      std::memcpy(&scale, bytes, sizeof(scale));
      Dequantise(reinterpret_cast<const int8_t*>(bytes + sizeof(scale)), count, scale, values);
      return;
    }
  }
}

// Calls `work(first, count, byte)` for each chunk of `count` elements; the chunk's encoding begins
// at `byte`.
template <typename Work>
void ForEachChunk(WireFormat format, size_t count, Work work) {
  const size_t chunk_bytes = EncodedBytes(format, kChunk);
  for (size_t first = 0, byte = 0; first < count; first += kChunk, byte += chunk_bytes) {
    work(first, std::min(kChunk, count - first), byte);
  }
}

}  // namespace

void AddInto(std::span<float> sum, std::span<const float> x) {
  COVEY_CHECK(sum.size() == x.size());
  AddArrays(sum.data(), x.data(), sum.size());
}

void Scale(std::span<float> x, float factor) {
  if (factor == 0) {
    std::fill(x.begin(), x.end(), 0.0f);
    return;
  }
  if (factor == 1) return;
  for (float& value : x) value *= factor;
}

void Encode(WireFormat format, std::span<const float> values, std::span<uint8_t> bytes) {
  COVEY_CHECK(bytes.size() == EncodedBytes(format, values.size()));
  ForEachChunk(format, values.size(), [&](size_t first, size_t count, size_t byte) {
    EncodeChunk(format, values.data() + first, count, bytes.data() + byte);
  });
}

void Decode(WireFormat format, std::span<const uint8_t> bytes, std::span<float> values) {
  COVEY_CHECK(bytes.size() == EncodedBytes(format, values.size()));
  if (format == WireFormat::kFloat32) {
    if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
    return;
  }
  ForEachChunk(format, values.size(), [&](size_t first, size_t count, size_t byte) {
    DecodeChunk(format, bytes.data() + byte, count, values.data() + first);
  });
}

void DecodeAndAdd(WireFormat format, std::span<const uint8_t> bytes, std::span<float> sum) {
  COVEY_CHECK(bytes.size() == EncodedBytes(format, sum.size()));
  const bool aligned = reinterpret_cast<uintptr_t>(bytes.data()) % alignof(float) == 0;
  if (format == WireFormat::kFloat32 && aligned) {
    AddArrays(sum.data(), reinterpret_cast<const float*>(bytes.data()), sum.size());
    return;
  }
  ForEachChunk(format, sum.size(), [&](size_t first, size_t count, size_t byte) {
    alignas(64) float decoded[kChunk];
    DecodeChunk(format, bytes.data() + byte, count, decoded);
    AddArrays(sum.data() + first, decoded, count);
  });
}

void EncodeWithFeedback(WireFormat format, std::span<const float> values, std::span<float> residual,
                        std::span<uint8_t> bytes) {
  COVEY_CHECK(bytes.size() == EncodedBytes(format, values.size()));
  COVEY_CHECK(residual.size() == values.size());
  ForEachChunk(format, values.size(), [&](size_t first, size_t count, size_t byte) {
    alignas(64) float wanted[kChunk];
    alignas(64) float sent[kChunk];
    std::memcpy(wanted, values.data() + first, count * sizeof(float));
    AddArrays(wanted, residual.data() + first, count);
    EncodeChunk(format, wanted, count, bytes.data() + byte);
    DecodeChunk(format, bytes.data() + byte, count, sent);
    KeepLoss(wanted, sent, count, residual.data() + first);
  });
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0

// The arithmetic of half_codec.cc, bfloat_codec.cc and int8_codec.cc.

#include "common/gpu/codec.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/gpu/elementwise.h"
#include "common/tensor/float_bits.h"

namespace covey::gpu {
namespace {

// Two bytes on the wire, at any address.
struct Word {
  uint8_t low;
  uint8_t high;
};
static_assert(alignof(Word) == 1);

__device__ uint32_t Bits(float value) { return __float_as_uint(value); }
__device__ float Float(uint32_t bits) { return __uint_as_float(bits); }

__device__ Word WordOf(uint32_t bits) {
  return {static_cast<uint8_t>(bits), static_cast<uint8_t>(bits >> 8)};
}
__device__ uint32_t BitsOfWord(Word word) { return word.low | uint32_t{word.high} << 8; }

__device__ uint32_t HalfOf(float value) {
  const uint32_t bits = Bits(value);
  const uint32_t sign = (bits & kFloatSign) >> 16;
  const uint32_t magnitude = bits & ~kFloatSign;
  const uint32_t subnormal = Bits(Float(magnitude) + 0.5f) - Bits(0.5f);
  const uint32_t odd = (magnitude >> 13) & 1;
  const uint32_t normal = (magnitude - (uint32_t{112} << 23) + 0xfff + odd) >> 13;
  const uint32_t quiet = 0x7e00 | ((magnitude >> 13) & 0x1ff);
  uint32_t half = magnitude < (uint32_t{113} << 23) ? subnormal : normal;
  half = magnitude >= (uint32_t{143} << 23) ? 0x7c00 : half;
  half = magnitude > kFloatInfinity ? quiet : half;
  return sign | half;
}

__device__ float FloatOfHalf(uint32_t half) {
  const uint32_t sign = (half & 0x8000) << 16;
  const uint32_t magnitude = (half & 0x7fff) << 13;
  const uint32_t normal = magnitude + (uint32_t{112} << 23);
  const uint32_t subnormal =
      Bits(Float(magnitude + (uint32_t{113} << 23)) - Float(uint32_t{113} << 23));
  const uint32_t special = magnitude + (uint32_t{224} << 23);
  const uint32_t quiet = (half & 0x3ff) != 0 ? uint32_t{1} << 22 : 0;
  uint32_t bits = (half & 0x7c00) == 0 ? subnormal : normal;
  bits = (half & 0x7c00) == 0x7c00 ? (special | quiet) : bits;
  return Float(sign | bits);
}

__device__ uint32_t BfloatOf(float value) {
  const uint32_t bits = Bits(value);
  const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const uint32_t quiet = (bits >> 16) | 0x40;
  return (bits & ~kFloatSign) > kFloatInfinity ? quiet : rounded;
}

constexpr unsigned kBlockElements = kInt8BlockElements;
constexpr size_t kBlockBytes = EncodedBytes(WireFormat::kInt8Block, kInt8BlockElements);

// One block of threads per encoded block, one thread per element.
__global__ void EncodeInt8Block(size_t count, const float* values, uint8_t* bytes) {
  __shared__ unsigned largest;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  const size_t i = size_t{blockIdx.x} * kBlockElements + threadIdx.x;
  const float value = i < count ? values[i] : 0.0f;
  atomicMax(&largest, Bits(value) & ~kFloatSign);
  __syncthreads();
  const float scale = largest >= kFloatInfinity ? Float(0x7fc00000) : Float(largest) / 127.0f;
  uint8_t* const block = bytes + size_t{blockIdx.x} * kBlockBytes;
  if (threadIdx.x < sizeof(scale)) {
    block[threadIdx.x] = static_cast<uint8_t>(Bits(scale) >> (8 * threadIdx.x));
  }
  if (i >= count) return;
  int32_t quantum = 0;
  if (scale > 0) {
    // Adding and subtracting 1.5 * 2^23 rounds to nearest even.
    constexpr float kRound = 12582912.0f;
    float steps = value / scale;
    steps = steps > 127.0f ? 127.0f : steps;
    steps = steps < -127.0f ? -127.0f : steps;
    quantum = static_cast<int32_t>((steps + kRound) - kRound);
  }
  block[sizeof(scale) + threadIdx.x] = static_cast<uint8_t>(quantum);
}

__global__ void DecodeInt8Block(size_t count, const uint8_t* bytes, float* values) {
  const size_t i = size_t{blockIdx.x} * kBlockElements + threadIdx.x;
  if (i >= count) return;
  const uint8_t* const block = bytes + size_t{blockIdx.x} * kBlockBytes;
  uint32_t bits = 0;
  for (int k = 3; k >= 0; --k) bits = bits << 8 | block[k];
  const float scale = Float(bits);
  values[i] = static_cast<float>(static_cast<int8_t>(block[sizeof(scale) + threadIdx.x])) * scale;
}

unsigned BlocksOf(size_t count) {
  return static_cast<unsigned>((count + kBlockElements - 1) / kBlockElements);
}

Read<Word> Words(std::span<const uint8_t> bytes) {
  return {reinterpret_cast<const Word*>(bytes.data())};
}
Write<Word> Words(std::span<uint8_t> bytes) { return {reinterpret_cast<Word*>(bytes.data())}; }

}  // namespace

void Encode(WireFormat format, std::span<const float> values, std::span<uint8_t> bytes) {
  const size_t count = values.size();
  if (count == 0) return;
  switch (format) {
    case WireFormat::kFloat32:
      cudaMemcpyAsync(bytes.data(), values.data(), bytes.size(), cudaMemcpyDeviceToDevice,
                      cudaStreamPerThread);
      return;
    case WireFormat::kFloat16:
      ForEach(
          count, [] __device__(float value, Word& word) { word = WordOf(HalfOf(value)); },
          Read<float>{values.data()}, Words(bytes));
      return;
    case WireFormat::kBfloat16:
      ForEach(
          count, [] __device__(float value, Word& word) { word = WordOf(BfloatOf(value)); },
          Read<float>{values.data()}, Words(bytes));
      return;
    case WireFormat::kInt8Block:
      EncodeInt8Block<<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
          count, values.data(), bytes.data());
      return;
  }
}

void Decode(WireFormat format, std::span<const uint8_t> bytes, std::span<float> values) {
  const size_t count = values.size();
  if (count == 0) return;
  switch (format) {
    case WireFormat::kFloat32:
      cudaMemcpyAsync(values.data(), bytes.data(), bytes.size(), cudaMemcpyDeviceToDevice,
                      cudaStreamPerThread);
      return;
    case WireFormat::kFloat16:
      ForEach(
          count, [] __device__(Word word, float& value) { value = FloatOfHalf(BitsOfWord(word)); },
          Words(bytes), Write<float>{values.data()});
      return;
    case WireFormat::kBfloat16:
      ForEach(
          count, [] __device__(Word word, float& value) { value = Float(BitsOfWord(word) << 16); },
          Words(bytes), Write<float>{values.data()});
      return;
    case WireFormat::kInt8Block:
      DecodeInt8Block<<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
          count, bytes.data(), values.data());
      return;
  }
}

}  // namespace covey::gpu

// SPDX-License-Identifier: Apache-2.0

// The arithmetic of half_codec.cc, bfloat_codec.cc, int8_codec.cc and scaled_codec.cc.

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

__device__ float NotANumber() { return Float(0x7fc00000); }

// The power of two of scaled_codec.cc.
__device__ float PowerOfTwo(uint32_t largest, uint32_t top, uint32_t bits_off) {
  if (largest == 0) return 0;
  const uint32_t exponent = (largest + (uint32_t{1} << (bits_off - 1))) >> 23;
  return Float((exponent > top ? exponent - top : 1) << 23);
}

// An element of a block: the block's scale, if its largest magnitude is finite and has the bits
// `largest`, and the element at `bytes`, which has kBytes.
struct Int8 {
  static constexpr size_t kBytes = 1;
  __device__ static float Scale(uint32_t largest) { return Float(largest) / 127.0f; }
  // Precondition: scale > 0.
  __device__ static void Put(float value, float scale, uint8_t* bytes) {
    // Adding and subtracting 1.5 * 2^23 rounds to nearest even.
    constexpr float kRound = 12582912.0f;
    float steps = value / scale;
    steps = steps > 127.0f ? 127.0f : steps;
    steps = steps < -127.0f ? -127.0f : steps;
    *bytes = static_cast<uint8_t>(static_cast<int32_t>((steps + kRound) - kRound));
  }
  __device__ static float Get(const uint8_t* bytes) {
    return static_cast<float>(static_cast<int8_t>(*bytes));
  }
};

struct ScaledHalf {
  static constexpr size_t kBytes = 2;
  __device__ static float Scale(uint32_t largest) { return PowerOfTwo(largest, 14, 13); }
  __device__ static void Put(float value, float scale, uint8_t* bytes) {
    *reinterpret_cast<Word*>(bytes) = WordOf(HalfOf(value * (1.0f / scale)));
  }
  __device__ static float Get(const uint8_t* bytes) {
    return FloatOfHalf(BitsOfWord(*reinterpret_cast<const Word*>(bytes)));
  }
};

struct Float8 {
  static constexpr size_t kBytes = 1;
  __device__ static float Scale(uint32_t largest) { return PowerOfTwo(largest, 7, 20); }
  __device__ static void Put(float value, float scale, uint8_t* bytes) {
    const uint32_t bits = Bits(value * (1.0f / scale));
    const uint32_t magnitude = bits & ~kFloatSign;
    const uint32_t subnormal = Bits(Float(magnitude) + 16384.0f) - Bits(16384.0f);
    const uint32_t odd = (magnitude >> 20) & 1;
    const uint32_t normal = (magnitude - (uint32_t{120} << 23) + 0x7ffff + odd) >> 20;
    const uint32_t rounded = magnitude < (uint32_t{121} << 23) ? subnormal : normal;
    *bytes = static_cast<uint8_t>((bits & kFloatSign) >> 24 | rounded);
  }
  __device__ static float Get(const uint8_t* bytes) {
    const uint32_t sign = uint32_t{*bytes & 0x80u} << 24;
    const uint32_t magnitude = uint32_t{*bytes & 0x7fu} << 20;
    const uint32_t normal = magnitude + (uint32_t{120} << 23);
    const uint32_t subnormal =
        Bits(Float(magnitude + (uint32_t{121} << 23)) - Float(uint32_t{121} << 23));
    uint32_t bits = (*bytes & 0x78) == 0 ? subnormal : normal;
    bits = (*bytes & 0x7f) == 0x7f ? (kFloatInfinity | uint32_t{1} << 22) : bits;
    return Float(sign | bits);
  }
};

// Each of the first threads of a block writes a byte.
__device__ void WriteScale(float scale, uint8_t* block) {
  if (threadIdx.x < sizeof(scale)) {
    block[threadIdx.x] = static_cast<uint8_t>(Bits(scale) >> (8 * threadIdx.x));
  }
}

__device__ float ReadScale(const uint8_t* block) {
  uint32_t bits = 0;
  for (int k = 3; k >= 0; --k) bits = bits << 8 | block[k];
  return Float(bits);
}

template <typename Element>
constexpr size_t kBlockBytes = BlockBytes(Element::kBytes, kBlockElements);

// One block of threads per encoded block, one thread per element.
template <typename Element>
__global__ void EncodeBlocks(size_t count, const float* values, uint8_t* bytes) {
  __shared__ unsigned largest;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  const size_t i = size_t{blockIdx.x} * kBlockElements + threadIdx.x;
  const float value = i < count ? values[i] : 0.0f;
  atomicMax(&largest, Bits(value) & ~kFloatSign);
  __syncthreads();
  const float scale = largest >= kFloatInfinity ? NotANumber() : Element::Scale(largest);
  uint8_t* const block = bytes + blockIdx.x * kBlockBytes<Element>;
  WriteScale(scale, block);
  if (i >= count) return;
  uint8_t* const out = block + sizeof(scale) + Element::kBytes * threadIdx.x;
  if (scale > 0) {
    Element::Put(value, scale, out);
  } else {
    for (size_t k = 0; k < Element::kBytes; ++k) out[k] = 0;
  }
}

template <typename Element>
__global__ void DecodeBlocks(size_t count, const uint8_t* bytes, float* values) {
  const size_t i = size_t{blockIdx.x} * kBlockElements + threadIdx.x;
  if (i >= count) return;
  const uint8_t* const block = bytes + blockIdx.x * kBlockBytes<Element>;
  const float scale = ReadScale(block);
  values[i] = Element::Get(block + sizeof(scale) + Element::kBytes * threadIdx.x) * scale;
}

constexpr size_t kTopBlockBytes = EncodedBytes(WireFormat::kTopBlock, kBlockElements);

// KeptOfBlock, which is a function of the host.
__device__ unsigned KeptOf(size_t size) { return static_cast<unsigned>((size + 31) / 32); }

// One block of threads per encoded block, one thread per element, of which each counts how many
// are larger.
__global__ void EncodeTopBlocks(size_t count, const float* values, uint8_t* bytes) {
  __shared__ unsigned magnitudes[kBlockElements];
  __shared__ unsigned is_kept[kBlockElements];
  __shared__ unsigned largest;
  if (threadIdx.x == 0) largest = 0;
  __syncthreads();
  const size_t first = size_t{blockIdx.x} * kBlockElements;
  const size_t size = min(size_t{kBlockElements}, count - first);
  const bool is_inside = threadIdx.x < size;
  const float value = is_inside ? values[first + threadIdx.x] : 0.0f;
  const unsigned magnitude = Bits(value) & ~kFloatSign;
  magnitudes[threadIdx.x] = magnitude;
  atomicMax(&largest, magnitude);
  __syncthreads();
  unsigned larger = 0;
  for (unsigned i = 0; i < size; ++i) {
    larger += magnitudes[i] > magnitude || (magnitudes[i] == magnitude && i < threadIdx.x);
  }
  const unsigned kept = KeptOf(size);
  is_kept[threadIdx.x] = is_inside && larger < kept;
  __syncthreads();
  const float scale = largest >= kFloatInfinity ? NotANumber() : Float8::Scale(largest);
  uint8_t* const block = bytes + blockIdx.x * kTopBlockBytes;
  WriteScale(scale, block);
  if (!is_kept[threadIdx.x]) return;
  unsigned before = 0;
  for (unsigned i = 0; i < threadIdx.x; ++i) before += is_kept[i];
  uint8_t* const place = block + sizeof(scale) + before;
  *place = static_cast<uint8_t>(threadIdx.x);
  if (scale > 0) {
    Float8::Put(value, scale, place + kept);
  } else {
    place[kept] = 0;
  }
}

__global__ void DecodeTopBlocks(size_t count, const uint8_t* bytes, float* values) {
  const size_t first = size_t{blockIdx.x} * kBlockElements;
  const size_t size = min(size_t{kBlockElements}, count - first);
  const uint8_t* const block = bytes + blockIdx.x * kTopBlockBytes;
  const float scale = ReadScale(block);
  if (threadIdx.x < size) values[first + threadIdx.x] = 0 * scale;
  __syncthreads();
  const unsigned kept = KeptOf(size);
  if (threadIdx.x >= kept) return;
  const uint8_t* const place = block + sizeof(scale) + threadIdx.x;
  // Of elements with the same place the last one counts, in bytes that Encode did not make.
  for (unsigned later = 1; later < kept - threadIdx.x; ++later) {
    if (place[later] == *place) return;
  }
  if (*place < size) values[first + *place] = Float8::Get(place + kept) * scale;
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
      EncodeBlocks<Int8><<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
          count, values.data(), bytes.data());
      return;
    case WireFormat::kFloat16Block:
      EncodeBlocks<ScaledHalf><<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
          count, values.data(), bytes.data());
      return;
    case WireFormat::kFloat8Block:
      EncodeBlocks<Float8><<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
          count, values.data(), bytes.data());
      return;
    case WireFormat::kTopBlock:
      EncodeTopBlocks<<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
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
      DecodeBlocks<Int8><<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
          count, bytes.data(), values.data());
      return;
    case WireFormat::kFloat16Block:
      DecodeBlocks<ScaledHalf><<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
          count, bytes.data(), values.data());
      return;
    case WireFormat::kFloat8Block:
      DecodeBlocks<Float8><<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
          count, bytes.data(), values.data());
      return;
    case WireFormat::kTopBlock:
      DecodeTopBlocks<<<BlocksOf(count), kBlockElements, 0, cudaStreamPerThread>>>(
          count, bytes.data(), values.data());
      return;
  }
}

}  // namespace covey::gpu

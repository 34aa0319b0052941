// SPDX-License-Identifier: Apache-2.0

// Every encoding of the GPU against that of the processor, compared bit for bit: lengths that end
// within a block or a pack, bytes and floats at any address, and floats of any bits at all.

#include "common/gpu/codec.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/gpu/memory.h"
#include "common/gpu/testing/gpu_test.h"
#include "common/tensor/codec.h"
#include "common/tensor/wire_format.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

// Bytes in floats of the GPU's memory, from `start` on.
std::vector<float> AsFloats(std::span<const uint8_t> bytes, size_t start) {
  std::vector<float> floats((start + bytes.size() + 3) / 4 + 1);
  std::memcpy(reinterpret_cast<uint8_t*>(floats.data()) + start, bytes.data(), bytes.size());
  return floats;
}

std::span<uint8_t> BytesOf(gpu::Floats& floats, size_t start, size_t size) {
  return {reinterpret_cast<uint8_t*>(floats.span().data()) + start, size};
}

void CompareEncode(WireFormat format, std::span<const float> values, size_t byte_start,
                   size_t float_start) {
  std::vector<uint8_t> expected(EncodedBytes(format, values.size()));
  Encode(format, values, expected);
  std::vector<float> placed(float_start);
  placed.insert(placed.end(), values.begin(), values.end());
  gpu::Floats gpu_values = OnGpu(placed);
  // Other bytes than the encoded ones, so that each one must be written and none beside them.
  for (uint8_t& byte : expected) byte = static_cast<uint8_t>(~byte);
  gpu::Floats gpu_bytes = OnGpu(AsFloats(expected, byte_start));
  for (uint8_t& byte : expected) byte = static_cast<uint8_t>(~byte);
  gpu::Encode(format, std::span<const float>(gpu_values.span()).subspan(float_start),
              BytesOf(gpu_bytes, byte_start, expected.size()));
  const std::vector<float> all = FromGpu(gpu_bytes);
  const std::vector<float> wanted = AsFloats(expected, byte_start);
  ASSERT_EQ(std::memcmp(all.data(), wanted.data(), wanted.size() * sizeof(float)), 0);
}

void CompareDecode(WireFormat format, std::span<const uint8_t> bytes, size_t count,
                   size_t byte_start, size_t float_start) {
  std::vector<float> expected(float_start + count, -1.0f);
  Decode(format, bytes, std::span(expected).subspan(float_start));
  gpu::Floats gpu_bytes = OnGpu(AsFloats(bytes, byte_start));
  gpu::Floats gpu_values = OnGpu(std::vector<float>(float_start + count, -1.0f));
  gpu::Decode(format, BytesOf(gpu_bytes, byte_start, bytes.size()),
              gpu_values.span().subspan(float_start));
  ExpectSameBits(FromGpu(gpu_values), expected);
}

std::vector<float> SpecialNumbers() {
  using Limits = std::numeric_limits<float>;
  std::vector<float> special;
  for (const float x : {0.0f, Limits::denorm_min(), Limits::min(), 5.9604645e-8f, 6.1035156e-5f,
                        1.0f, 65504.0f, 65519.996f, 65520.0f, Limits::max(), Limits::infinity(),
                        Limits::quiet_NaN(), Limits::signaling_NaN()}) {
    special.push_back(x);
    special.push_back(-x);
  }
  return special;
}

using GpuCodecTest = GpuTest;

TEST_F(GpuCodecTest, EncodesAndDecodesAsTheProcessorDoes) {
  for (const WireFormat format : kWireFormats) {
    Random random(7);
    for (const size_t length : Lengths(random)) {
      for (const Fill& fill : {Fill(OrdinaryNumber), Fill(AnyBits)}) {
        SCOPED_TRACE(testing::Message() << WireFormatName(format) << " of " << length);
        const std::vector<float> values = RandomFloats(random, fill, length);
        std::vector<uint8_t> bytes(EncodedBytes(format, length));
        for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random.Next());
        for (const size_t start : {size_t{0}, size_t{8}, size_t{random.Below(16)}}) {
          CompareEncode(format, values, start, start);
          CompareDecode(format, bytes, length, start, start);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_F(GpuCodecTest, EncodesSpecialNumbersAsTheProcessorDoes) {
  for (const WireFormat format : kWireFormats) {
    SCOPED_TRACE(WireFormatName(format));
    const std::vector<float> special = SpecialNumbers();
    CompareEncode(format, special, 0, 0);
    for (const float x : special) CompareEncode(format, std::vector<float>(3, x), 1, 1);
  }
}

TEST_F(GpuCodecTest, DecodesEveryWordAsTheProcessorDoes) {
  std::vector<uint8_t> words(2 << 16);
  for (size_t i = 0; i < words.size() / 2; ++i) {
    words[2 * i] = static_cast<uint8_t>(i);
    words[2 * i + 1] = static_cast<uint8_t>(i >> 8);
  }
  CompareDecode(WireFormat::kFloat16, words, words.size() / 2, 0, 0);
  CompareDecode(WireFormat::kBfloat16, words, words.size() / 2, 0, 0);
}

}  // namespace
}  // namespace covey

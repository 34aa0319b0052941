// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/kernels.h"
#include "common/tensor/testing/each_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;
using ::testing::HasSubstr;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomValues(size_t count, Random& random, double magnitude = 1) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>((random.Uniform() * 2 - 1) * magnitude);
  }
  return values;
}

// Any float; each exponent is equally likely.
float AnyFloat(Random& random) {
  return std::bit_cast<float>(static_cast<uint32_t>(random.Next()));
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

std::vector<uint8_t> Encoded(WireFormat format, std::span<const float> values) {
  std::vector<uint8_t> bytes(EncodedBytes(format, values.size()));
  Encode(format, values, bytes);
  return bytes;
}

std::vector<float> RoundTrip(WireFormat format, std::span<const float> values) {
  std::vector<float> decoded(values.size());
  Decode(format, Encoded(format, values), decoded);
  return decoded;
}

uint16_t Word(const std::vector<uint8_t>& bytes, size_t index = 0) {
  uint16_t word = 0;
  std::memcpy(&word, bytes.data() + 2 * index, sizeof(word));
  return word;
}

// The result of rounding to `fraction_bits` within the exponents of a format, computed in doubles,
// which can hold all of it: nearest, ties to even.
double Rounded(double value, int fraction_bits, int smallest_exponent, double largest) {
  if (std::isnan(value) || std::isinf(value) || value == 0) return value;
  const int exponent = std::max(std::ilogb(value), smallest_exponent);
  const double unit = std::ldexp(1.0, exponent - fraction_bits);
  const double rounded = std::nearbyint(value / unit) * unit;
  return std::fabs(rounded) > largest ? std::copysign(kInfinity, value) : rounded;
}

double HalfReference(double value) { return Rounded(value, 10, -14, 65504); }
double BfloatReference(double value) {
  return Rounded(value, 7, -126, static_cast<double>(std::bit_cast<float>(0x7f7f0000u)));
}

using CodecTest = EachTargetTest;
COVEY_FOR_EACH_TARGET(CodecTest);

// Runs of 1 use the plain code, longer ones the vector code: both give the same bits.
TEST_P(CodecTest, HalvesAreRoundedToNearestEven) {
  Random random(3);
  std::vector<float> values;
  for (int i = 0; i < 200'000; ++i) {
    const float any = AnyFloat(random);
    // Of zeros, infinities and NaN the exponent is no number to calculate with.
    const int exponent = std::clamp(std::ilogb(any), -200, 200);
    values.push_back(i % 2 == 0 ? any : std::ldexp(any, -exponent + 20 - i % 50));
  }
  // Ties, the edges of the range, and halfway to infinity.
  for (const float v : {1.0f + 1.0f / 2048, 1.0f + 3.0f / 2048, 65504.0f, 65519.99f, 65520.0f,
                        std::ldexp(1.0f, -24), std::ldexp(1.0f, -25), std::ldexp(1.5f, -25),
                        std::ldexp(1.0f, -14), std::ldexp(1023.5f, -24), 0.0f, kInfinity}) {
    values.push_back(v);
    values.push_back(-v);
  }
  const std::vector<uint8_t> bytes = Encoded(WireFormat::kFloat16, values);
  const std::vector<float> decoded = RoundTrip(WireFormat::kFloat16, values);
  for (size_t i = 0; i < values.size(); ++i) {
    const std::vector<uint8_t> one = Encoded(WireFormat::kFloat16, std::span(&values[i], 1));
    ASSERT_EQ(Word(bytes, i), Word(one)) << values[i];
    ASSERT_TRUE(SameBits(RoundTrip(WireFormat::kFloat16, std::span(&values[i], 1)),
                         std::span(&decoded[i], 1)));
    if (std::isnan(values[i])) {
      ASSERT_TRUE(std::isnan(decoded[i]));
    } else {
      ASSERT_EQ(decoded[i], HalfReference(values[i])) << values[i];
      ASSERT_EQ(std::signbit(decoded[i]), std::signbit(values[i]));
    }
  }
}

TEST_P(CodecTest, EveryHalfSurvivesARoundTrip) {
  std::vector<uint8_t> bytes(2 * 65536);
  for (uint32_t half = 0; half < 65536; ++half) {
    const auto word = static_cast<uint16_t>(half);
    std::memcpy(bytes.data() + 2 * half, &word, 2);
  }
  std::vector<float> values(65536);
  Decode(WireFormat::kFloat16, bytes, values);
  const std::vector<uint8_t> again = Encoded(WireFormat::kFloat16, values);
  for (uint32_t half = 0; half < 65536; ++half) {
    const bool nan = (half & 0x7c00) == 0x7c00 && (half & 0x3ff) != 0;
    ASSERT_EQ(Word(again, half), nan ? half | 0x200 : half);
    float alone = 0;
    Decode(WireFormat::kFloat16, std::span(bytes).subspan(2 * half, 2), std::span(&alone, 1));
    ASSERT_TRUE(SameBits(std::span(&alone, 1), std::span(&values[half], 1))) << half;
  }
}

TEST_P(CodecTest, BfloatsAreRoundedToNearestEven) {
  Random random(4);
  std::vector<float> values;
  for (int i = 0; i < 100'000; ++i) values.push_back(AnyFloat(random));
  for (const uint32_t bits : {0x3f808000u, 0x3f818000u, 0x7f7fffffu, 0x00008000u, 0x7f800001u}) {
    values.push_back(std::bit_cast<float>(bits));
  }
  const std::vector<float> decoded = RoundTrip(WireFormat::kBfloat16, values);
  for (size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) {
      ASSERT_TRUE(std::isnan(decoded[i]));
    } else {
      ASSERT_EQ(decoded[i], BfloatReference(values[i])) << values[i];
    }
  }
}

TEST_P(CodecTest, BytesStandForStepsOfTheLargestOfTheirBlock) {
  Random random(5);
  for (const size_t count : {1, 2, 255, 256, 257, 700}) {
    for (const double magnitude : {1e-30, 1.0, 1e30}) {
      const std::vector<float> values = RandomValues(count, random, magnitude);
      const std::vector<float> decoded = RoundTrip(WireFormat::kInt8Block, values);
      for (size_t first = 0; first < count; first += kBlockElements) {
        const size_t end = std::min(count, first + kBlockElements);
        double largest = 0;
        for (size_t i = first; i < end; ++i)
          largest = std::max(largest, std::fabs(1.0 * values[i]));
        for (size_t i = first; i < end; ++i) {
          ASSERT_NEAR(decoded[i], values[i], largest / 254 * 1.00001);
        }
      }
      // A value that has been rounded once does not change again.
      EXPECT_TRUE(SameBits(RoundTrip(WireFormat::kInt8Block, decoded), decoded));
    }
  }
}

// The largest error of an element in a block whose largest magnitude is `largest`; a scale is at
// least 2^-126.
double ScaledError(WireFormat format, double value, double largest) {
  const bool is_byte = format == WireFormat::kFloat8Block;
  return std::max(
      std::ldexp(std::fabs(value), is_byte ? -4 : -11),
      std::ldexp(std::max(largest, std::ldexp(1.0, is_byte ? -119 : -112)), is_byte ? -17 : -39));
}

TEST_P(CodecTest, ScaledFloatsKeepSmallAndLargeElements) {
  Random random(6);
  for (const WireFormat format : {WireFormat::kFloat16Block, WireFormat::kFloat8Block}) {
    for (const size_t count : {1, 2, 255, 256, 257, 700}) {
      for (const double magnitude : {1e-37, 1e-9, 1.0, 1e6, 3e38}) {
        std::vector<float> values = RandomValues(count, random, magnitude);
        for (size_t i = 0; i < count; i += 3) values[i] *= 1e-3f;
        const std::vector<float> decoded = RoundTrip(format, values);
        for (size_t first = 0; first < count; first += kBlockElements) {
          const size_t end = std::min(count, first + kBlockElements);
          double largest = 0;
          for (size_t i = first; i < end; ++i) {
            largest = std::max(largest, std::fabs(1.0 * values[i]));
          }
          for (size_t i = first; i < end; ++i) {
            ASSERT_NEAR(decoded[i], values[i], ScaledError(format, values[i], largest) + 1e-45)
                << WireFormatName(format);
          }
        }
        EXPECT_TRUE(SameBits(RoundTrip(format, decoded), decoded)) << WireFormatName(format);
      }
    }
  }
}

// Beside an element of 128, the scale is 1.
TEST_P(CodecTest, BytesAreThoseOfE4M3) {
  const std::vector<std::pair<float, uint8_t>> golden = {
      {0.0f, 0x00},    {-0.0f, 0x80},   {1.0f, 0x38},    {-1.5f, 0xbc},     {240.0f, 0x77},
      {246.0f, 0x77},  {1.0625f, 0x38}, {1.1875f, 0x3a}, {0.015625f, 0x08}, {0.001953125f, 1},
      {0.0009765f, 0}, {0.0009766f, 1}, {0.0029297f, 2}, {-0.0146f, 0x87},  {0.0151f, 0x08},
  };
  for (const auto& [value, byte] : golden) {
    const std::vector<uint8_t> bytes = Encoded(WireFormat::kFloat8Block, {{128.0f, value}});
    ASSERT_EQ(bytes.size(), 6);
    EXPECT_EQ(bytes[4], 0x70) << "128";
    EXPECT_EQ(bytes[5], byte) << value;
  }
  const std::vector<uint8_t> none = {0, 0, 0x80, 0x3f, 0x7f, 0xff, 0x7e, 0x81};  // scale 1
  std::vector<float> decoded(4);
  Decode(WireFormat::kFloat8Block, none, decoded);
  EXPECT_TRUE(std::isnan(decoded[0]) && std::isnan(decoded[1]));
  EXPECT_EQ(decoded[2], 448.0f);
  EXPECT_EQ(decoded[3], -0.001953125f);
}

// What float16 cannot carry: it overflows, or loses what is small.
TEST_P(CodecTest, ScalesSaveWhatHalvesLose) {
  const std::vector<float> large = {3e5f, -2e5f, 1.0f};
  EXPECT_TRUE(std::isinf(RoundTrip(WireFormat::kFloat16, large)[0]));
  EXPECT_THAT(RoundTrip(WireFormat::kFloat16Block, large),
              ElementsAre(FloatNear(3e5f, 150), FloatNear(-2e5f, 100), FloatNear(1.0f, 5e-4f)));
  const std::vector<float> small = {3e-9f, -2e-9f};
  EXPECT_THAT(RoundTrip(WireFormat::kFloat16, small), ElementsAre(0.0f, 0.0f));
  EXPECT_THAT(RoundTrip(WireFormat::kFloat16Block, small),
              ElementsAre(FloatNear(3e-9f, 2e-12f), FloatNear(-2e-9f, 1e-12f)));
}

TEST_P(CodecTest, TheLargestOfEachBlockTravel) {
  Random random(7);
  for (const size_t count : {1, 2, 32, 33, 255, 256, 257, 700}) {
    const std::vector<float> values = RandomValues(count, random);
    const std::vector<float> decoded = RoundTrip(WireFormat::kTopBlock, values);
    for (size_t first = 0; first < count; first += kBlockElements) {
      const size_t size = std::min(count - first, kBlockElements);
      float smallest_sent = kInfinity;
      float largest_left = 0;
      size_t sent = 0;
      for (size_t i = first; i < first + size; ++i) {
        if (decoded[i] == 0) {
          largest_left = std::max(largest_left, std::fabs(values[i]));
          continue;
        }
        ++sent;
        smallest_sent = std::min(smallest_sent, std::fabs(values[i]));
        ASSERT_NEAR(decoded[i], values[i], std::ldexp(std::fabs(values[i]), -4));
      }
      EXPECT_EQ(sent, KeptOfBlock(size));
      EXPECT_GE(smallest_sent, largest_left);
    }
  }
  // Of equal ones the first; golden bytes: the scale 2^-7, two places, and 1 as 2^7 of it.
  EXPECT_THAT(Encoded(WireFormat::kTopBlock, std::vector<float>(33, 1.0f)),
              ElementsAre(0, 0, 0, 0x3c, 0, 1, 0x70, 0x70));
  // A place outside the block counts for nothing.
  std::vector<float> three(3, 9.0f);
  Decode(WireFormat::kTopBlock, std::vector<uint8_t>{0, 0, 0x80, 0x3f, 3, 0x38}, three);
  EXPECT_THAT(three, ElementsAre(0, 0, 0));
}

TEST_P(CodecTest, EachRowOfInt8HasItsOwnScale) {
  constexpr size_t kWidth = 3;
  const std::vector<float> rows = {127, -254, 0, 0.5f, 0.25f, -0.125f};
  std::vector<uint8_t> bytes(EncodedRowBytes(WireFormat::kInt8Block, kWidth, 2));
  EXPECT_EQ(bytes.size(), 2 * (4 + kWidth));
  EncodeRows(WireFormat::kInt8Block, kWidth, rows, bytes);
  std::vector<float> decoded(rows.size());
  DecodeRows(WireFormat::kInt8Block, kWidth, bytes, decoded);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_NEAR(decoded[i], rows[i], (i < kWidth ? 254 : 0.5) / 254) << i;
  }
}

TEST_P(CodecTest, RowsOfOtherFormatsAreEncodedAsElements) {
  Random random(1);
  const std::vector<float> rows = RandomValues(7 * 300, random);
  for (const WireFormat format :
       {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16}) {
    std::vector<uint8_t> as_rows(EncodedRowBytes(format, 7, 300));
    std::vector<uint8_t> as_elements(EncodedBytes(format, rows.size()));
    EncodeRows(format, 7, rows, as_rows);
    Encode(format, rows, as_elements);
    EXPECT_EQ(as_rows, as_elements) << WireFormatName(format);
  }
}

TEST_P(CodecTest, ABlockOfZerosOrOfTheSmallestStaysFinite) {
  const float smallest = std::numeric_limits<float>::denorm_min();
  for (const std::vector<float>& values :
       {std::vector<float>(300, 0.0f), std::vector<float>(300, smallest),
        std::vector<float>(300, 190 * smallest), std::vector<float>(3, 3.4e38f)}) {
    for (const WireFormat format : {WireFormat::kInt8Block, WireFormat::kFloat16Block}) {
      for (const float value : RoundTrip(format, values)) {
        EXPECT_TRUE(std::isfinite(value)) << WireFormatName(format);
        EXPECT_LE(value, values[0]) << WireFormatName(format);
      }
    }
  }
}

TEST_P(CodecTest, WhatIsNotFiniteShows) {
  const std::vector<float> values = {1, kNan, -kInfinity, kInfinity, 2};
  for (const WireFormat format : {WireFormat::kFloat16, WireFormat::kBfloat16}) {
    const std::vector<float> decoded = RoundTrip(format, values);
    EXPECT_EQ(decoded[0], 1);
    EXPECT_TRUE(std::isnan(decoded[1]));
    EXPECT_EQ(decoded[2], -kInfinity);
    EXPECT_EQ(decoded[3], kInfinity);
    EXPECT_EQ(decoded[4], 2);
  }
  for (const float bad : {kNan, -kInfinity}) {
    std::vector<float> blocks(512, 1.0f);
    blocks[300] = bad;
    for (const WireFormat format : kWireFormats) {
      if (!HasBlocks(format)) continue;
      const std::vector<float> decoded = RoundTrip(format, blocks);
      EXPECT_EQ(decoded[0], 1);
      EXPECT_TRUE(std::isnan(decoded[256]) && std::isnan(decoded[511]));
    }
  }
}

TEST_P(CodecTest, DecodeAndAddIsDecodeAndThenAdd) {
  Random random(6);
  for (const WireFormat format : kWireFormats) {
    for (const size_t count : {0, 1, 255, 256, 1000}) {
      for (const size_t shift : {0, 1}) {  // unaligned bytes
        const std::vector<float> values = RandomValues(count, random);
        std::vector<uint8_t> bytes(shift + EncodedBytes(format, count));
        const std::span<uint8_t> encoded = std::span(bytes).subspan(shift);
        Encode(format, values, encoded);
        std::vector<float> sum = RandomValues(count, random);
        std::vector<float> expected = sum;
        std::vector<float> decoded(count);
        Decode(format, encoded, decoded);
        AddInto(expected, decoded);
        DecodeAndAdd(format, encoded, sum);
        EXPECT_TRUE(SameBits(sum, expected)) << WireFormatName(format) << " " << count;
      }
    }
  }
}

// The sent values and the kept residual add up to the input. So the mean of many sends is right,
// although a single one cannot represent 0.001 beside 1.
TEST_P(CodecTest, FeedbackLosesNothingOverTime) {
  for (const WireFormat format : kWireFormats) {
    const std::vector<float> values = {1, 0.001f, -0.3333333f, 0.123456f};
    std::vector<float> residual(values.size());
    std::vector<double> sent(values.size());
    std::vector<uint8_t> bytes(EncodedBytes(format, values.size()));
    constexpr int kSteps = 1000;
    for (int step = 0; step < kSteps; ++step) {
      const std::vector<float> before = residual;
      EncodeWithFeedback(format, values, residual, bytes);
      std::vector<float> decoded(values.size());
      Decode(format, bytes, decoded);
      for (size_t i = 0; i < values.size(); ++i) {
        sent[i] += decoded[i];
        EXPECT_FLOAT_EQ(decoded[i] + residual[i], values[i] + before[i]);
      }
    }
    for (size_t i = 0; i < values.size(); ++i) {
      // What waits to be sent stays below a few steps' worth, of which topk sends the largest.
      const double waiting = format == WireFormat::kTopBlock ? 4.0 / kSteps : 2e-5;
      EXPECT_NEAR(sent[i] / kSteps, values[i], waiting) << WireFormatName(format);
    }
  }
}

TEST_P(CodecTest, FeedbackForgetsWhatIsNotFinite) {
  const std::vector<float> values = {1e30f, kNan, 1};
  std::vector<float> residual(3);
  std::vector<uint8_t> bytes(EncodedBytes(WireFormat::kFloat16, 3));
  EncodeWithFeedback(WireFormat::kFloat16, values, residual, bytes);
  EXPECT_TRUE(SameBits(residual, std::vector<float>{0, 0, 0}));
}

TEST(WireFormatTest, NamesReadBack) {
  for (const WireFormat format : kWireFormats) {
    EXPECT_EQ(*ParseWireFormat(WireFormatName(format)), format);
  }
  EXPECT_THAT(ParseWireFormat("fp8").status().message(), HasSubstr("float32, float16"));
}

}  // namespace
}  // namespace covey

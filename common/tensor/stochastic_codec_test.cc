// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/stochastic_codec.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/codec.h"
#include "common/tensor/testing/each_target.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using Floats = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr WireFormat kFormats[] = {WireFormat::kFloat16, WireFormat::kBfloat16};

std::vector<uint16_t> Encoded(WireFormat format, uint64_t stream, const Floats& values) {
  std::vector<uint8_t> bytes(EncodedBytes(format, values.size()));
  EncodeStochastic(format, stream, values, bytes);
  std::vector<uint16_t> words(values.size());
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

Floats Decoded(WireFormat format, const std::vector<uint16_t>& words) {
  Floats values(words.size());
  Decode(format, {reinterpret_cast<const uint8_t*>(words.data()), 2 * words.size()}, values);
  return values;
}

Floats Rounded(WireFormat format, uint64_t stream, const Floats& values) {
  return Decoded(format, Encoded(format, stream, values));
}

// Any float; each exponent is equally likely.
Floats AnyFloats(Random& random, size_t count) {
  Floats values(count);
  for (float& value : values) value = std::bit_cast<float>(static_cast<uint32_t>(random.Next()));
  return values;
}

// The distance between the two neighbors of a value.
double UnitAt(WireFormat format, double value) {
  const bool is_half = format == WireFormat::kFloat16;
  const int exponent = std::max(value == 0 ? -1000 : std::ilogb(value), is_half ? -14 : -126);
  return std::ldexp(1.0, exponent - (is_half ? 10 : 7));
}

using StochasticCodecTest = EachTargetTest;
COVEY_FOR_EACH_TARGET(StochasticCodecTest);

TEST_P(StochasticCodecTest, GivesOneOfTheTwoNeighbors) {
  Random random(1);
  for (const WireFormat format : kFormats) {
    const double largest = format == WireFormat::kFloat16 ? 65504 : 3.3895313892515355e38;
    const Floats values = AnyFloats(random, 20'000);
    const Floats rounded = Rounded(format, 7, values);
    for (size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      if (std::isnan(value)) {
        EXPECT_TRUE(std::isnan(rounded[i]));
        continue;
      }
      EXPECT_EQ(std::signbit(value), std::signbit(rounded[i]));
      if (std::fabs(value) > largest) {
        EXPECT_GE(std::fabs(rounded[i]), largest) << value;
        continue;
      }
      EXPECT_LT(std::fabs(rounded[i] - value), UnitAt(format, value)) << value;
    }
  }
}

TEST_P(StochasticCodecTest, KeepsWhatTheFormatHas) {
  for (const WireFormat format : kFormats) {
    std::vector<uint16_t> all(1 << 16);
    for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint16_t>(i);
    const Floats values = Decoded(format, all);
    for (uint64_t stream = 0; stream < 4; ++stream) {
      const std::vector<uint16_t> again = Encoded(format, stream * 0x123456789abcdef, values);
      for (size_t i = 0; i < all.size(); ++i) {
        if (std::isnan(values[i])) continue;
        EXPECT_EQ(again[i], all[i]);
      }
    }
  }
}

// The mean of many roundings is the value, within what chance allows.
TEST_P(StochasticCodecTest, IsRightOnAverage) {
  constexpr int kStreams = 20'000;
  const Floats values = {1.0001f, 0.1f, -0.3f, 1.99999f, 1e-3f, -7e-6f, 3e-7f, 2e-8f, 40'000.1f};
  for (const WireFormat format : kFormats) {
    std::vector<double> sums(values.size());
    Random random(2);
    for (int i = 0; i < kStreams; ++i) {
      const Floats rounded = Rounded(format, random.Next(), values);
      for (size_t c = 0; c < values.size(); ++c) sums[c] += rounded[c];
    }
    for (size_t c = 0; c < values.size(); ++c) {
      // The standard deviation of one rounding is at most half a unit.
      EXPECT_NEAR(sums[c] / kStreams, values[c],
                  5 * 0.5 * UnitAt(format, values[c]) / std::sqrt(kStreams))
          << WireFormatName(format) << " " << values[c];
    }
  }
}

// Half-way values: a bit of each element says whether it was rounded up. No two of them go
// together, across elements, or across streams that follow each other as those of a row's updates.
TEST_P(StochasticCodecTest, RoundsElementsAndStreamsIndependently) {
  constexpr size_t kWidth = 64;
  constexpr int kStreams = 4'096;
  const Floats half_way(kWidth, 1 + 0x1p-8f);
  std::vector<std::vector<int>> up(kStreams, std::vector<int>(kWidth));
  for (int stream = 0; stream < kStreams; ++stream) {
    const Floats rounded =
        Rounded(WireFormat::kBfloat16, MixBits(static_cast<uint64_t>(stream)), half_way);
    for (size_t c = 0; c < kWidth; ++c) up[stream][c] = rounded[c] > 1 ? 1 : -1;
  }
  const double limit = 6 * std::sqrt(kStreams);
  for (size_t a = 0; a < kWidth; ++a) {
    for (size_t b = 0; b < kWidth; ++b) {
      int same_stream = 0;
      int next_stream = 0;
      for (int stream = 0; stream + 1 < kStreams; ++stream) {
        same_stream += up[stream][a] * up[stream][b];
        next_stream += up[stream][a] * up[stream + 1][b];
      }
      EXPECT_LT(std::abs(next_stream), limit) << a << " " << b;
      if (a == b) continue;
      EXPECT_LT(std::abs(same_stream), limit) << a << " " << b;
    }
  }
}

TEST_P(StochasticCodecTest, BeyondTheRangeLiesInfinityAndNanStays) {
  const Floats values = {65'536, 1e6f, -1e30f, kInfinity, -kInfinity};
  EXPECT_EQ(Rounded(WireFormat::kFloat16, 3, values),
            Floats({kInfinity, kInfinity, -kInfinity, kInfinity, -kInfinity}));
  // Those whose payloads the formats have no place for, or that a carry would leave.
  for (const WireFormat format : kFormats) {
    for (const uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0xffffffffu}) {
      EXPECT_TRUE(std::isnan(Rounded(format, 5, {std::bit_cast<float>(bits)})[0])) << bits;
    }
  }
  // Between the largest half and 2^16, as between any two neighbors.
  int infinite = 0;
  for (uint64_t stream = 0; stream < 1'000; ++stream) {
    const float rounded = Rounded(WireFormat::kFloat16, MixBits(stream), {65'512})[0];
    infinite += rounded == kInfinity;
    EXPECT_TRUE(rounded == kInfinity || rounded == 65'504);
  }
  EXPECT_NEAR(infinite, 250, 70);
}

// Rows on different machines have the same bits, and parts of a row those of the whole one.
TEST_P(StochasticCodecTest, BitsAreThoseOfEveryMachine) {
  Random random(9);
  const Floats values = AnyFloats(random, 1'000);
  uint64_t digest = 0;
  for (const WireFormat format : kFormats) {
    const std::vector<uint16_t> whole = Encoded(format, 0xfedcba9876543210, values);
    for (const uint16_t word : whole) digest = MixBits(digest ^ word);
    for (const size_t count : {1, 3, 16, 255, 256, 257}) {
      EXPECT_EQ(Encoded(format, 0xfedcba9876543210, Floats(values.begin(), values.begin() + count)),
                std::vector<uint16_t>(whole.begin(), whole.begin() + count));
    }
  }
  EXPECT_EQ(digest, uint64_t{11164954275732773613u});
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/kernels.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomValues(size_t count, Random& random) {
  std::vector<float> values(count);
  for (float& value : values) {
    value = static_cast<float>(random.Uniform() * 2 - 1);
  }
  return values;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

// Sizes around vector widths, and starts that are not aligned to them.
TEST(TensorKernelsTest, SumsAreThoseOfAPlainLoop) {
  Random random(1);
  for (const size_t count : {0, 1, 3, 4, 7, 8, 15, 16, 17, 1000}) {
    for (const size_t start : {0, 1, 3}) {
      std::vector<float> into = RandomValues(count + start, random);
      const std::vector<float> other = RandomValues(count + start, random);
      std::vector<float> expected = into;
      for (size_t i = start; i < expected.size(); ++i) {
        volatile float sum = other[i] + expected[i];
        expected[i] = sum;
      }
      AddInto(std::span(into).subspan(start), std::span(other).subspan(start));
      EXPECT_TRUE(SameBits(into, expected));
    }
  }
}

TEST(TensorKernelsTest, AddHasTheBitsOfACopyAndAddInto) {
  Random random(3);
  for (const size_t count : {0, 1, 3, 4, 7, 8, 15, 16, 17, 1000}) {
    for (const size_t start : {0, 1, 3}) {
      std::vector<float> a = RandomValues(count + start, random);
      std::vector<float> b = RandomValues(count + start, random);
      if (count == 1000) {
        const float kinds[] = {0.0f, -0.0f, 1e-40f, -1e-40f, kInfinity, 3e38f, -1.0f};
        for (size_t i = 0; i < count; ++i) {
          a[i] = kinds[i % std::size(kinds)];
          // No opposite infinities: the payload of a NaN is not promised.
          b[i] = kinds[i / std::size(kinds) % std::size(kinds)];
        }
      }
      std::vector<float> expected = a;
      AddInto(std::span(expected).subspan(start), std::span(b).subspan(start));
      std::vector<float> sum = a;
      std::fill(sum.begin() + static_cast<std::ptrdiff_t>(start), sum.end(), kNan);
      Add(std::span(a).subspan(start), std::span(b).subspan(start), std::span(sum).subspan(start));
      EXPECT_TRUE(SameBits(sum, expected)) << count << " from " << start;
    }
  }
}

TEST(TensorKernelsTest, ScalesEachElement) {
  Random random(2);
  std::vector<float> values = RandomValues(37, random);
  std::vector<float> expected = values;
  for (float& value : expected) value *= 64;
  Scale(values, 64);
  EXPECT_TRUE(SameBits(values, expected));
}

TEST(TensorKernelsTest, NoSamplesGiveZerosEvenOfGarbage) {
  std::vector<float> values = {kNan, 1, kInfinity};
  Scale(values, 0);
  EXPECT_TRUE(SameBits(values, std::vector<float>{0, 0, 0}));
}

}  // namespace
}  // namespace covey

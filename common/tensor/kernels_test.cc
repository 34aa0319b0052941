// SPDX-License-Identifier: Apache-2.0

// Every kernel against a loop that handles one element at a time, compared bit for bit.

#include "common/tensor/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/testing/each_target.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// Around the widths of vectors.
constexpr size_t kCounts[] = {0,  1,  3,  4,  7,  8,   15,   16,   17,   31,
                              32, 33, 63, 65, 97, 255, 1000, 1023, 1025, 2500};
// Floats before the first one, so that no alignment can be relied on.
constexpr size_t kStarts[] = {0, 1, 3};

// A third are the ones with rules of their own.
std::vector<float> RandomValues(size_t count, Random& random) {
  constexpr float kSpecial[] = {0.0f,   -0.0f, 1e-40f,    -1e-40f,   3e38f,
                                -3e38f, kNan,  kInfinity, -kInfinity};
  std::vector<float> values(count);
  for (float& value : values) {
    value = random.Chance(0.33) ? kSpecial[random.Below(std::size(kSpecial))]
                                : static_cast<float>(random.Uniform() * 2 - 1);
  }
  return values;
}

// The payload of a NaN is not promised.
bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return (std::isnan(x) && std::isnan(y)) ||
           std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

using TensorKernelsTest = EachTargetTest;
COVEY_FOR_EACH_TARGET(TensorKernelsTest);

// Calls `test(count, start)` for all of both.
template <typename Test>
void ForEachShape(Test test) {
  for (const size_t count : kCounts) {
    for (const size_t start : kStarts) {
      SCOPED_TRACE(testing::Message() << count << " from " << start);
      test(count, start);
    }
  }
}

TEST_P(TensorKernelsTest, AddIntoAddsEachElement) {
  Random random(1);
  ForEachShape([&](size_t count, size_t start) {
    std::vector<float> into = RandomValues(start + count, random);
    const std::vector<float> other = RandomValues(start + count, random);
    std::vector<float> expected = into;
    for (size_t i = start; i < expected.size(); ++i) expected[i] += other[i];
    AddInto(std::span(into).subspan(start), std::span(other).subspan(start));
    EXPECT_TRUE(SameBits(into, expected));
  });
}

TEST_P(TensorKernelsTest, AddHasTheBitsOfACopyAndAddInto) {
  Random random(3);
  ForEachShape([&](size_t count, size_t start) {
    const std::vector<float> a = RandomValues(start + count, random);
    const std::vector<float> b = RandomValues(start + count, random);
    std::vector<float> expected = a;
    AddInto(std::span(expected).subspan(start), std::span(b).subspan(start));
    std::vector<float> sum = a;
    std::fill(sum.begin() + static_cast<std::ptrdiff_t>(start), sum.end(), 1.0f);
    Add(std::span(a).subspan(start), std::span(b).subspan(start), std::span(sum).subspan(start));
    EXPECT_TRUE(SameBits(sum, expected));
  });
}

TEST_P(TensorKernelsTest, LossIsZeroWhereItIsNotFinite) {
  Random random(7);
  ForEachShape([&](size_t count, size_t start) {
    const std::vector<float> wanted = RandomValues(start + count, random);
    const std::vector<float> sent = RandomValues(start + count, random);
    std::vector<float> residual(start + count, 7), expected(start + count, 7);
    for (size_t i = start; i < expected.size(); ++i) {
      expected[i] = std::isfinite(wanted[i] - sent[i]) ? wanted[i] - sent[i] : 0.0f;
    }
    KeepLoss(std::span(wanted).subspan(start), std::span(sent).subspan(start),
             std::span(residual).subspan(start));
    EXPECT_TRUE(SameBits(residual, expected));
  });
}

TEST_P(TensorKernelsTest, ScalesEachElement) {
  Random random(2);
  ForEachShape([&](size_t count, size_t start) {
    std::vector<float> values = RandomValues(start + count, random);
    std::vector<float> expected = values;
    for (size_t i = start; i < expected.size(); ++i) expected[i] *= 0.3f;
    Scale(std::span(values).subspan(start), 0.3f);
    EXPECT_TRUE(SameBits(values, expected));
  });
}

TEST_P(TensorKernelsTest, SumsSquaresInTheStatedOrder) {
  Random random(5);
  ForEachShape([&](size_t count, size_t start) {
    std::vector<float> values(start + count);
    for (float& value : values) value = static_cast<float>(random.Uniform() * 2 - 1);
    double sums[8] = {};
    for (size_t i = 0; i < count; ++i) {
      sums[i % 8] +=
          static_cast<double>(values[start + i]) * static_cast<double>(values[start + i]);
    }
    double expected = 0;
    for (const double sum : sums) expected += sum;
    EXPECT_EQ(SumOfSquares(std::span(values).subspan(start)), expected);
  });
  EXPECT_EQ(SumOfSquares(std::vector<float>{3e38f, -3e38f}),
            2 * (static_cast<double>(3e38f) * static_cast<double>(3e38f)));
  EXPECT_TRUE(std::isnan(SumOfSquares(std::vector<float>{1, kNan})));
}

TEST_P(TensorKernelsTest, NoSamplesGiveZerosEvenOfGarbage) {
  for (const float zero : {0.0f, -0.0f}) {
    std::vector<float> values = {kNan, 1, kInfinity, -1, -kInfinity, -kNan, -0.0f, 3, 4};
    Scale(values, zero);
    EXPECT_TRUE(SameBits(values, std::vector<float>(values.size(), 0.0f)));
  }
}

}  // namespace
}  // namespace covey

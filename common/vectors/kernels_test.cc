// SPDX-License-Identifier: Apache-2.0
#include "common/vectors/kernels.h"

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/testing/each_target.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInfinity = std::numeric_limits<float>::infinity();

class VectorKernelsTest : public EachTargetTest {};
COVEY_FOR_EACH_TARGET(VectorKernelsTest);

std::vector<float> Drawn(size_t count, uint64_t seed) {
  Random random(seed);
  std::vector<float> x(count);
  for (float& element : x) {
    element = static_cast<float>(static_cast<int64_t>(random.Below(2'000'001)) - 1'000'000) / 7;
  }
  return x;
}

// As the header says it: lanes by index, added in growing order.
double InLanes(const std::vector<double>& terms) {
  double lanes[kVectorLanes] = {};
  for (size_t i = 0; i < terms.size(); ++i) lanes[i % kVectorLanes] += terms[i];
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

TEST_P(VectorKernelsTest, SumsHaveTheStatedOrder) {
  for (const size_t count : {1, 15, 16, 17, 1000, 4099}) {
    const std::vector<float> a = Drawn(count, count);
    const std::vector<float> b = Drawn(count, count + 1);
    std::vector<double> products, terms, magnitudes;
    for (size_t i = 0; i < count; ++i) {
      products.push_back(double{a[i]} * double{b[i]});
      terms.push_back(a[i]);
      magnitudes.push_back(std::fabs(a[i]));
    }
    EXPECT_EQ(std::bit_cast<uint64_t>(Dot(a, b)), std::bit_cast<uint64_t>(InLanes(products)));
    EXPECT_EQ(std::bit_cast<uint64_t>(Sum(a)), std::bit_cast<uint64_t>(InLanes(terms)));
    EXPECT_EQ(std::bit_cast<uint64_t>(SumOfMagnitudes(a)),
              std::bit_cast<uint64_t>(InLanes(magnitudes)));
  }
}

TEST_P(VectorKernelsTest, ExtremesAndCounts) {
  std::vector<float> x = Drawn(1003, 3);
  x[17] = 0;
  x[18] = -0.0f;
  x[500] = -200'000;
  x[1002] = 150'000;
  EXPECT_EQ(Smallest(x), -200'000);
  EXPECT_EQ(Largest(x), 150'000);
  EXPECT_EQ(LargestMagnitude(x), 200'000);
  size_t zeros = 0;
  for (const float element : x) zeros += element == 0 ? 1 : 0;
  EXPECT_GE(zeros, 2u);
  EXPECT_EQ(CountNonZero(x), x.size() - zeros);
}

TEST_P(VectorKernelsTest, NanIsNoExtreme) {
  std::vector<float> x(40, kNan);
  EXPECT_EQ(Smallest(x), kInfinity);
  EXPECT_EQ(Largest(x), -kInfinity);
  EXPECT_EQ(LargestMagnitude(x), 0);
  EXPECT_EQ(CountNonZero(x), x.size());
  x[33] = -5;
  EXPECT_EQ(Smallest(x), -5);
  EXPECT_EQ(Largest(x), -5);
  EXPECT_EQ(LargestMagnitude(x), 5);
}

TEST_P(VectorKernelsTest, ElementwiseRoundsAfterEachOperation) {
  const std::vector<float> x = Drawn(1003, 5);
  const std::vector<float> in = Drawn(1003, 6);
  const float factor = 0.1f;
  std::vector<float> added(x.size()), scaled(x.size()), in_place = in, filled(x.size());
  AddScaled(factor, x, in, added);
  AddScaled(factor, x, in_place, in_place);
  Scaled(factor, x, scaled);
  Fill(3, filled);
  for (size_t i = 0; i < x.size(); ++i) {
    const volatile float product = factor * x[i];  // not fused with the addition
    EXPECT_EQ(scaled[i], product);
    EXPECT_EQ(added[i], in[i] + product);
    EXPECT_EQ(in_place[i], added[i]);
    EXPECT_EQ(filled[i], 3);
  }
  // A vector may be added to itself.
  std::vector<float> doubled = in;
  AddScaled(1, doubled, doubled, doubled);
  for (size_t i = 0; i < in.size(); ++i) EXPECT_EQ(doubled[i], 2 * in[i]);
}

}  // namespace
}  // namespace covey

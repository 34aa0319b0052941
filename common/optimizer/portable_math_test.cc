// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/portable_math.h"

#include <cmath>
#include <cstdint>
#include <numbers>

#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(PortableMathTest, PowerAgreesWithTheLibrary) {
  EXPECT_EQ(Power(0.9, 0), 1);
  EXPECT_EQ(Power(0, 5), 0);
  EXPECT_EQ(Power(2, 10), 1024);
  for (uint64_t exponent : {2, 3, 17, 1000, 123456}) {
    const double expected = std::pow(0.999, static_cast<double>(exponent));
    EXPECT_NEAR(Power(0.999, exponent) / expected, 1, static_cast<double>(exponent) * 2e-16);
  }
  EXPECT_EQ(Power(0.999, UINT64_MAX), 0);
}

TEST(PortableMathTest, CosineAgreesWithTheLibrary) {
  EXPECT_EQ(CosineOfPi(0.5), 0);
  for (int i = 0; i <= 1000; ++i) {
    const double x = i / 1000.0;
    EXPECT_NEAR(CosineOfPi(x), std::cos(std::numbers::pi * x), 1e-15) << x;
  }
}

// erfc comes from the library, and is the inverse of the tested function.
TEST(PortableMathTest, NormalQuantileInvertsTheDistribution) {
  EXPECT_EQ(NormalQuantile(0.5), 0);
  for (double probability = 1e-300; probability < 0.5; probability *= 1.7) {
    const double x = NormalQuantile(probability);
    const double back = 0.5 * std::erfc(-x / std::numbers::sqrt2);
    // An error in x counts |x| times as much in the distribution's tail, relative to it.
    EXPECT_NEAR(back / probability, 1, 1e-14 * (1 + x * x)) << probability;
    if (probability > 1e-10) {
      EXPECT_NEAR(NormalQuantile(1 - probability), -x, 1e-15 / probability) << probability;
    }
  }
}

}  // namespace
}  // namespace covey

#include "server/optimizer/portable_math.h"

#include <cmath>
#include <cstdint>
#include <numbers>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey::server {
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

TEST(PortableMathTest, LogarithmAgreesWithTheLibrary) {
  EXPECT_EQ(NaturalLogarithm(1), 0);
  Random random(1);
  for (int i = 0; i < 10000; ++i) {
    const double x = std::exp((random.Uniform() - 0.5) * 200);
    EXPECT_NEAR(NaturalLogarithm(x) / std::log(x), 1, 1e-14) << x;
  }
}

TEST(PortableMathTest, CosineAgreesWithTheLibrary) {
  EXPECT_EQ(CosineOfPi(0.5), 0);
  for (int i = 0; i <= 1000; ++i) {
    const double x = i / 1000.0;
    EXPECT_NEAR(CosineOfPi(x), std::cos(std::numbers::pi * x), 1e-15) << x;
  }
}

}  // namespace
}  // namespace covey::server

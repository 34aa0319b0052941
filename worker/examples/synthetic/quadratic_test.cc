// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/quadratic.h"

#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

namespace covey::synthetic {
namespace {

constexpr size_t kElements = 130;

TEST(QuadraticTest, DescentArrivesAsTheFormulaSays) {
  for (const size_t tensor : {0, 3}) {
    std::vector<float> values(kElements, 0), gradient(kElements);
    const Quadratic problem({});
    EXPECT_EQ(Quadratic::Distance(tensor, values), 1);
    for (int update = 1; update <= 10; ++update) {
      problem.WriteGradient(tensor, values, gradient);
      for (size_t i = 0; i < kElements; ++i) values[i] -= 0.25f * gradient[i];
      EXPECT_NEAR(Quadratic::Distance(tensor, values), std::pow(0.75, update), 1e-6);
    }
  }
}

TEST(QuadraticTest, WorkersDisagreeButTheirMeanDoesNot) {
  constexpr uint32_t kWorkers = 3;
  const std::vector<float> values(kElements, 0.5f);
  std::vector<float> plain(kElements), mean(kElements, 0), gradient(kElements);
  Quadratic({}).WriteGradient(1, values, plain);
  for (uint32_t rank = 0; rank < kWorkers; ++rank) {
    Quadratic({.spread = 6, .rank = rank, .size = kWorkers}).WriteGradient(1, values, gradient);
    for (size_t i = 0; i < kElements; ++i) mean[i] += gradient[i] / kWorkers;
    EXPECT_NEAR(plain[0] - gradient[0], rank * 4.0 - 4, 1e-5);
  }
  for (size_t i = 0; i < kElements; ++i) EXPECT_NEAR(mean[i], plain[i], 1e-5);
}

TEST(QuadraticTest, OneWrongElementShows) {
  std::vector<float> values(kElements);
  for (size_t i = 0; i < kElements; ++i) values[i] = Quadratic::Optimum(2, i);
  EXPECT_EQ(Quadratic::Distance(2, values), 0);
  values[100] = 0;
  EXPECT_EQ(Quadratic::Distance(2, values), 1);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_TRUE(std::isinf(Quadratic::Distance(2, values)));
}

}  // namespace
}  // namespace covey::synthetic

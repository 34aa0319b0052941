// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/synthetic/workload.h"

#include <cmath>

#include "gtest/gtest.h"

namespace covey::synthetic {
namespace {

TEST(WorkloadTest, TimeIsSamplesTimesCostTimesSlownessPlusHangs) {
  const Options options = {
      .milliseconds_per_sample = 2,
      .slow = {{.rank = 1, .factor = 5, .first_step = 3}},
      .hangs = {{.rank = 0, .step = 4, .duration = absl::Seconds(1)}},
  };
  EXPECT_EQ(ComputeTime(options, 0, 3, 8), absl::Milliseconds(16));
  EXPECT_EQ(ComputeTime(options, 0, 4, 8), absl::Milliseconds(1016));
  EXPECT_EQ(ComputeTime(options, 1, 2, 8), absl::Milliseconds(16));
  EXPECT_EQ(ComputeTime(options, 1, 3, 8), absl::Milliseconds(80));
  EXPECT_EQ(ComputeTime(options, 1, 4, 0), absl::ZeroDuration());
}

TEST(WorkloadTest, NoiseHasTheAskedMeanAndDeviationAndIsTheSameInEveryRun) {
  const Options options = {.milliseconds_per_sample = 1, .step_noise = 0.3};
  const auto milliseconds = [&](uint64_t step) {
    return absl::ToDoubleMilliseconds(ComputeTime(options, 2, step, 10));
  };
  constexpr int kSteps = 20000;
  double sum = 0, logarithms = 0, squares = 0;
  for (int step = 1; step <= kSteps; ++step) {
    const double time = milliseconds(step);
    sum += time;
    logarithms += std::log(time);
    squares += std::log(time) * std::log(time);
  }
  const double mean = logarithms / kSteps;
  EXPECT_NEAR(sum / kSteps, 10, 0.1);
  EXPECT_NEAR(std::sqrt(squares / kSteps - mean * mean), 0.3, 0.01);
  EXPECT_EQ(milliseconds(7), milliseconds(7));
  EXPECT_NE(milliseconds(7), milliseconds(8));
  EXPECT_NE(ComputeTime(options, 2, 7, 10), ComputeTime(options, 3, 7, 10));
}

}  // namespace
}  // namespace covey::synthetic

// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/worker_pace.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/random.h"

namespace covey {
namespace {

PaceReport Steady(double seconds, double samples = 10) {
  return {.compute_seconds = seconds, .samples_per_step = samples};
}

WorkerPace After(size_t reports, const PaceReport& report) {
  WorkerPace pace({});
  for (size_t i = 0; i < reports; ++i) pace.Add(report);
  return pace;
}

TEST(WorkerPaceTest, TheFirstReportsAreNotCountedAndFewSayNothing) {
  WorkerPace pace({});
  pace.Add(Steady(50));
  pace.Add(Steady(50));
  for (int i = 0; i < 4; ++i) pace.Add(Steady(1));
  EXPECT_FALSE(pace.known());
  pace.Add(Steady(1));
  EXPECT_TRUE(pace.known());
  EXPECT_DOUBLE_EQ(pace.seconds_per_sample(), 0.1);
  EXPECT_DOUBLE_EQ(pace.step_seconds(), 1);
  EXPECT_DOUBLE_EQ(pace.error(), 0);
}

TEST(WorkerPaceTest, AHiccupDoesNotMoveThePace) {
  WorkerPace pace = After(30, Steady(1));
  pace.Add(Steady(40));
  EXPECT_LT(pace.seconds_per_sample(), 0.125);
  EXPECT_EQ(pace.hiccups(), 1u);
}

TEST(WorkerPaceTest, LastingSlownessIsAPaceAndOneHiccupOnly) {
  WorkerPace pace = After(30, Steady(1));
  for (int i = 0; i < 60; ++i) pace.Add(Steady(4));
  EXPECT_NEAR(pace.seconds_per_sample(), 0.4, 0.01);
  EXPECT_LE(pace.hiccups(), 1u);
}

TEST(WorkerPaceTest, TwiceAsSlowIsSeenWithinTenReports) {
  WorkerPace pace = After(100, Steady(1));
  for (int i = 0; i < 10; ++i) pace.Add(Steady(2));
  EXPECT_GT(pace.seconds_per_sample(), 0.15);
}

TEST(WorkerPaceTest, ASlowStepInsideAnIntervalIsAHiccup) {
  WorkerPace pace =
      After(30, {.compute_seconds = 1, .slowest_seconds = 1.2, .samples_per_step = 1});
  pace.Add({.compute_seconds = 1.1, .slowest_seconds = 3.5, .samples_per_step = 1});
  EXPECT_EQ(pace.hiccups(), 1u);
  for (int i = 0; i < 60; ++i) pace.Add(Steady(1, 1));
  EXPECT_EQ(pace.hiccups(), 0u) << "forgotten with the window";
}

TEST(WorkerPaceTest, ASlowStepThatCostsNothingIsNoHiccup) {
  PaceReport report = {.compute_seconds = 0.001, .slowest_seconds = 0.001, .samples_per_step = 1};
  WorkerPace pace({});
  for (int i = 0; i < 30; ++i) {
    report.steps += 1000;
    pace.Add(report);
  }
  report.steps += 1000;
  report.slowest_seconds = 0.04;
  pace.Add(report);
  EXPECT_EQ(pace.hiccups(), 0u);
  report.steps += 1000;
  report.slowest_seconds = 0.06;
  pace.Add(report);
  EXPECT_EQ(pace.hiccups(), 1u) << "6 % of the second";
}

TEST(WorkerPaceTest, NewSamplesPerStepStartTheStepTimeAnew) {
  WorkerPace pace = After(30, Steady(1, 10));
  pace.Add(Steady(0.5, 5));
  EXPECT_DOUBLE_EQ(pace.step_seconds(), 0.5);
  EXPECT_DOUBLE_EQ(pace.samples_per_step(), 5);
  EXPECT_NEAR(pace.seconds_per_sample(), 0.1, 1e-12);
}

TEST(WorkerPaceTest, CountsStepsAside) {
  WorkerPace pace = After(10, {.compute_seconds = 1, .samples_per_step = 1, .steps = 100});
  pace.Add({.compute_seconds = 1, .samples_per_step = 1, .steps = 110, .steps_aside = 4});
  EXPECT_DOUBLE_EQ(pace.aside(), 0.4);
}

TEST(WorkerPaceTest, IgnoresWhatIsNoMeasurement) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  WorkerPace pace = After(10, Steady(1));
  for (const PaceReport& bad : {Steady(0), Steady(-1), Steady(1, 0), Steady(nan), Steady(infinity),
                                Steady(1, nan), Steady(1, infinity)}) {
    pace.Add(bad);
  }
  EXPECT_DOUBLE_EQ(pace.seconds_per_sample(), 0.1);
  EXPECT_EQ(pace.window(), 8u);
}

TEST(WorkerPaceTest, TheErrorIsThatOfAnExponentialMean) {
  WorkerPace pace({});
  Random random(1);
  for (int i = 0; i < 5000; ++i) pace.Add(Steady(random.Chance(0.5) ? 0.8 : 1.2));
  // Relative deviation 0.2, times sqrt(0.1 / 1.9).
  EXPECT_NEAR(pace.error(), 0.2 * std::sqrt(0.1 / 1.9), 0.01);
}

}  // namespace
}  // namespace covey

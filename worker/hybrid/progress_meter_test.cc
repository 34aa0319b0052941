// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/progress_meter.h"

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

TEST(ProgressMeterTest, RatesAreThoseOfTheLastFullInterval) {
  ProgressMeter meter;
  absl::Time now = absl::UnixEpoch();
  EXPECT_FALSE(meter.AddStep(now, {.samples = 64, .loss = 2.0}));
  for (int i = 0; i < 3; ++i) {
    now += absl::Milliseconds(250);
    EXPECT_FALSE(meter.AddStep(now, {.samples = 64, .loss = 1.5}));
  }
  EXPECT_EQ(meter.progress().samples_per_second, 0);
  now += absl::Milliseconds(250);
  ASSERT_TRUE(meter.AddStep(now, {.samples = 64, .loss = 1.0}));
  meter.SetStaleness(2.5);
  meter.SetStepsAside(3);
  EXPECT_EQ(meter.progress().step, 5u);
  EXPECT_EQ(meter.progress().samples, 320u);
  EXPECT_EQ(meter.progress().loss, 1.0);
  // Four steps in one second: the first only started the clock.
  EXPECT_DOUBLE_EQ(meter.progress().samples_per_second, 256);
  EXPECT_EQ(meter.progress().staleness, 2.5);
  EXPECT_EQ(meter.progress().steps_aside, 3u);
  now += absl::Seconds(2);
  ASSERT_TRUE(meter.AddStep(now, {.samples = 100, .loss = 1.0}));
  EXPECT_DOUBLE_EQ(meter.progress().samples_per_second, 50);
}

TEST(ProgressMeterTest, TimesAreMeansPerStepOfTheInterval) {
  ProgressMeter meter;
  absl::Time now = absl::UnixEpoch();
  // Start-up counts for nothing.
  meter.AddStep(now, {.samples = 8, .compute = absl::Hours(1), .wait = absl::Hours(1)});
  for (int i = 1; i <= 2; ++i) {
    now += absl::Milliseconds(500);
    const bool over = meter.AddStep(now, {.samples = 8,
                                          .compute = i * absl::Milliseconds(100),
                                          .wait = absl::Milliseconds(50),
                                          .input = i * absl::Milliseconds(20),
                                          .servers = absl::Milliseconds(15)});
    EXPECT_EQ(over, i == 2);
  }
  EXPECT_DOUBLE_EQ(meter.progress().compute_seconds, 0.15);
  EXPECT_EQ(meter.step_durations().sum(), absl::Milliseconds(150 + 250));
  EXPECT_DOUBLE_EQ(meter.progress().wait_seconds, 0.05);
  EXPECT_DOUBLE_EQ(meter.progress().input_seconds, 0.03);
  EXPECT_DOUBLE_EQ(meter.progress().group_seconds, 0.035);
  EXPECT_DOUBLE_EQ(meter.progress().servers_seconds, 0.015);
  EXPECT_DOUBLE_EQ(meter.progress().slowest_seconds, 0.2);
  EXPECT_DOUBLE_EQ(meter.progress().samples_per_step, 8);
  now += absl::Seconds(1);
  ASSERT_TRUE(meter.AddStep(now, {.samples = 4, .compute = absl::Milliseconds(20)}));
  EXPECT_DOUBLE_EQ(meter.progress().compute_seconds, 0.02);
  EXPECT_DOUBLE_EQ(meter.progress().wait_seconds, 0);
  EXPECT_DOUBLE_EQ(meter.progress().input_seconds, 0);
  EXPECT_DOUBLE_EQ(meter.progress().servers_seconds, 0);
  EXPECT_DOUBLE_EQ(meter.progress().slowest_seconds, 0.02);
  EXPECT_DOUBLE_EQ(meter.progress().samples_per_step, 4);
}

TEST(ProgressMeterTest, TheTimesOfAllStepsDoNotWaitForAnInterval) {
  ProgressMeter meter;
  absl::Time now = absl::UnixEpoch();
  meter.AddStep(now, {.compute = absl::Hours(1), .wait = absl::Hours(1)});
  EXPECT_EQ(meter.progress().step_times.total(), 0) << "start-up is no step";
  for (const int64_t ms : {10, 30}) {
    now += absl::Milliseconds(600);
    meter.AddStep(now, {.compute = absl::Milliseconds(100),
                        .wait = absl::Milliseconds(50),
                        .input = absl::Milliseconds(ms),
                        .servers = absl::Milliseconds(15)});
  }
  now += absl::Milliseconds(600);
  meter.AddStep(now, {.compute = absl::Milliseconds(130)});
  const client::StepTimes& times = meter.progress().step_times;
  EXPECT_NEAR(times.computation, (0.2 - 0.04 + 0.13) / 3, 1e-12);
  EXPECT_NEAR(times.input, 0.04 / 3, 1e-12);
  EXPECT_NEAR(times.group, 0.07 / 3, 1e-12);
  EXPECT_NEAR(times.servers, 0.03 / 3, 1e-12);
  EXPECT_NEAR(meter.seconds().input, 0.04, 1e-12) << "all steps together";
  EXPECT_NEAR(meter.seconds().total(), 3 * times.total(), 1e-12);
}

TEST(ProgressMeterTest, AStepOnNoExamplesLeavesTheLoss) {
  ProgressMeter meter;
  absl::Time now = absl::UnixEpoch();
  meter.AddStep(now, {.samples = 64, .loss = 2.0});
  now += absl::Seconds(1);
  meter.AddStep(now, {.samples = 64, .loss = 1.5});
  now += absl::Seconds(1);
  ASSERT_TRUE(meter.AddStep(now, {.samples = 0, .loss = std::nullopt}));
  EXPECT_EQ(meter.progress().loss, 1.5);
  EXPECT_EQ(meter.progress().step, 3u);
  EXPECT_EQ(meter.progress().samples, 128u);
  now += absl::Seconds(1);
  meter.AddStep(now, {.samples = 64, .loss = 0.0});
  EXPECT_EQ(meter.progress().loss, 0) << "a loss may be 0";
}

}  // namespace
}  // namespace covey::worker

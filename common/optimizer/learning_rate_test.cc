// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/learning_rate.h"

#include <cstdint>
#include <limits>
#include <string>

#include "gtest/gtest.h"

namespace covey {
namespace {

double RateAt(const LearningRateConfig& config, uint64_t samples) {
  return LearningRateSchedule::Create(config).value().RateAt(samples);
}

TEST(LearningRateTest, ConstantNeverChanges) {
  const LearningRateConfig config = {.base_rate = 0.3};
  for (uint64_t samples : {uint64_t{0}, uint64_t{1}, uint64_t{1000}, UINT64_MAX}) {
    EXPECT_EQ(RateAt(config, samples), 0.3);
  }
}

TEST(LearningRateTest, WarmupGrowsInProportionAndThenStays) {
  const LearningRateConfig config = {.base_rate = 0.8, .warmup_samples = 1000};
  EXPECT_EQ(RateAt(config, 0), 0);
  EXPECT_DOUBLE_EQ(RateAt(config, 1), 0.0008);
  EXPECT_DOUBLE_EQ(RateAt(config, 250), 0.2);
  EXPECT_EQ(RateAt(config, 1000), 0.8);
  EXPECT_EQ(RateAt(config, 5000), 0.8);
}

TEST(LearningRateTest, StepMultipliesAfterEachPeriod) {
  const LearningRateConfig config = {.base_rate = 1,
                                     .warmup_samples = 50,
                                     .decay = Decay::kStep,
                                     .decay_samples = 100,
                                     .decay_factor = 0.5};
  EXPECT_EQ(RateAt(config, 25), 0.5);
  EXPECT_EQ(RateAt(config, 50), 1);
  EXPECT_EQ(RateAt(config, 100), 1);  // completes the first period
  EXPECT_EQ(RateAt(config, 101), 0.5);
  EXPECT_EQ(RateAt(config, 200), 0.5);
  EXPECT_EQ(RateAt(config, 201), 0.25);
  EXPECT_EQ(RateAt(config, UINT64_MAX), 0);
}

TEST(LearningRateTest, LinearEndsAtItsFraction) {
  const LearningRateConfig config = {.base_rate = 2,
                                     .warmup_samples = 100,
                                     .decay = Decay::kLinear,
                                     .decay_samples = 1100,
                                     .decay_factor = 0.1};
  EXPECT_EQ(RateAt(config, 50), 1);
  EXPECT_EQ(RateAt(config, 100), 2);
  EXPECT_DOUBLE_EQ(RateAt(config, 600), 1.1);
  EXPECT_DOUBLE_EQ(RateAt(config, 1100), 0.2);
  EXPECT_DOUBLE_EQ(RateAt(config, UINT64_MAX), 0.2);
}

TEST(LearningRateTest, CosineFallsSlowlyAtBothEnds) {
  const LearningRateConfig config = {
      .base_rate = 1, .decay = Decay::kCosine, .decay_samples = 1200, .decay_factor = 0.5};
  EXPECT_DOUBLE_EQ(RateAt(config, 0), 1);
  EXPECT_DOUBLE_EQ(RateAt(config, 400), 0.875);  // (1 + cos 60°) / 2 = 3/4 of the fall is left
  EXPECT_DOUBLE_EQ(RateAt(config, 600), 0.75);
  EXPECT_DOUBLE_EQ(RateAt(config, 1200), 0.5);
  EXPECT_DOUBLE_EQ(RateAt(config, 5000), 0.5);
}

TEST(LearningRateTest, RefusesWhatIsOutOfRangeAndNamesIt) {
  const auto message = [](const LearningRateConfig& config) {
    return std::string(LearningRateSchedule::Create(config).status().message());
  };
  EXPECT_EQ(message({.base_rate = 0}),
            "learning rate: base_rate is 0; choose a value above 0 and at most 1000");
  EXPECT_EQ(message({.base_rate = std::numeric_limits<double>::quiet_NaN()}),
            "learning rate: base_rate is nan; choose a value above 0 and at most 1000");
  EXPECT_EQ(message({.decay_factor = -1}),
            "learning rate: decay_factor is -1; choose a value in [0, 1]");
  EXPECT_EQ(message({.decay = Decay::kStep}),
            "learning rate: decay is step but decay_samples is 0; choose a value above 0");
  EXPECT_EQ(message({.warmup_samples = 9, .decay = Decay::kCosine, .decay_samples = 9}),
            "learning rate: decay is cosine and decay_samples is 9; choose a value above "
            "warmup_samples, which is 9");
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "worker/gradient_noise.h"

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

// Approximately normal, with mean 0 and variance 1.
double Normal(Random& random) {
  double sum = -6;
  for (int i = 0; i < 12; ++i) sum += random.Uniform();
  return sum;
}

// Gradients of a known signal, 4, and a known variance over single examples, 600, which differs by
// element.
constexpr size_t kElements = 200;
constexpr double kSignal = 4;
constexpr double kVariance = 600;
double VarianceOf(size_t element) { return element % 2 == 0 ? 5 : 1; }

GradientNorms NormsOf(const std::vector<uint64_t>& batches, Random& random) {
  std::vector<double> mean(kElements);
  GradientNorms norms;
  for (const uint64_t batch : batches) norms.samples += batch;
  const auto samples = static_cast<double>(norms.samples);
  for (const uint64_t batch : batches) {
    if (batch == 0) continue;
    ++norms.members;
    const auto own = static_cast<double>(batch);
    for (size_t i = 0; i < kElements; ++i) {
      const double gradient =
          std::sqrt(kSignal / kElements) + std::sqrt(VarianceOf(i) / own) * Normal(random);
      norms.member_square += own * gradient * gradient / samples;
      mean[i] += own * gradient / samples;
    }
  }
  for (const double element : mean) norms.group_square += element * element;
  return norms;
}

void ExpectKnown(const std::vector<uint64_t>& batches) {
  for (uint64_t seed = 1; seed <= 10; ++seed) {
    Random random(seed);
    NoiseEstimator estimator;
    double naive = 0;
    for (int step = 1; step <= 200; ++step) {
      const GradientNorms norms = NormsOf(batches, random);
      estimator.Add(norms);
      // The norms as they are, as if that of the group had no noise.
      naive += static_cast<double>(norms.samples) / norms.members * norms.member_square /
               norms.group_square / 200;
    }
    const GradientNoise noise = *estimator.noise();
    EXPECT_NEAR(noise.signal, kSignal, 0.2 * kSignal) << seed;
    EXPECT_NEAR(noise.variance, kVariance, 0.2 * kVariance) << seed;
    EXPECT_NEAR(noise.scale(), kVariance / kSignal, 0.2 * kVariance / kSignal) << seed;
    EXPECT_GT(std::abs(naive - kVariance / kSignal), 0.3 * kVariance / kSignal) << seed;
  }
}

TEST(NoiseEstimatorTest, FindsTheNoiseScaleWithin20PercentAfter200Steps) {
  ExpectKnown({32, 32, 32, 32});
}

TEST(NoiseEstimatorTest, MembersMayHaveOtherBatchesAndNone) { ExpectKnown({8, 64, 0, 24, 48}); }

TEST(NoiseEstimatorTest, FollowsAChange) {
  Random random(1);
  NoiseEstimator estimator(20);
  for (int step = 0; step < 200; ++step) {
    GradientNorms norms = NormsOf({32, 32, 32, 32}, random);
    norms.member_square *= 9;
    norms.group_square *= 9;
    estimator.Add(norms);
  }
  EXPECT_NEAR(estimator.noise()->signal, 9 * kSignal, 9 * 0.2 * kSignal);
  for (int step = 0; step < 200; ++step) estimator.Add(NormsOf({32, 32, 32, 32}, random));
  EXPECT_NEAR(estimator.noise()->signal, kSignal, 0.2 * kSignal);
  GradientNorms next = NormsOf({32, 32}, random);
  next.starts_over = true;
  estimator.Add(next);
  NoiseEstimator fresh;
  fresh.Add(next);
  EXPECT_EQ(estimator.noise()->variance, fresh.noise()->variance);
}

TEST(NoiseEstimatorTest, StepsThatSayNothingAreLeftOut) {
  NoiseEstimator estimator;
  EXPECT_FALSE(estimator.noise().has_value());
  estimator.Add({.members = 1, .samples = 8, .member_square = 2, .group_square = 2});
  EXPECT_FALSE(estimator.noise().has_value());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  estimator.Add({.members = 2, .samples = 8, .member_square = nan, .group_square = 2});
  estimator.Add({.members = 2, .samples = 8, .member_square = infinity, .group_square = 2});
  EXPECT_FALSE(estimator.noise().has_value());
  estimator.Add({.members = 2, .samples = 8, .member_square = 3, .group_square = 2});
  EXPECT_DOUBLE_EQ(estimator.noise()->signal, 1);
  EXPECT_DOUBLE_EQ(estimator.noise()->variance, 8);
}

TEST(GradientNoiseTest, IsDefinedAtTheEnds) {
  // No gradient at all.
  NoiseEstimator estimator;
  estimator.Add({.members = 2, .samples = 8});
  EXPECT_EQ(estimator.noise()->scale(), 0);
  EXPECT_EQ(estimator.noise()->RateGain(8, 64), 1);
  // Less signal than nothing: the members' gradients cancel out.
  estimator.Add({.starts_over = true, .members = 2, .samples = 8, .member_square = 3});
  EXPECT_EQ(estimator.noise()->signal, 0);
  EXPECT_EQ(estimator.noise()->scale(), std::numeric_limits<double>::infinity());
  EXPECT_EQ(estimator.noise()->RateGain(8, 64), 8);
}

TEST(GradientNoiseTest, TheRateGrowsWithTheBatchWhereThereIsNoise) {
  EXPECT_DOUBLE_EQ((GradientNoise{.signal = 1, .variance = 0}.RateGain(8, 64)), 1);
  EXPECT_DOUBLE_EQ((GradientNoise{.signal = 0, .variance = 1}.RateGain(8, 64)), 8);
  EXPECT_DOUBLE_EQ((GradientNoise{.signal = 1, .variance = 64}.RateGain(8, 64)), 9.0 / 2);
  EXPECT_DOUBLE_EQ((GradientNoise{.signal = 1, .variance = 64}.RateGain(64, 8)), 2.0 / 9);
  EXPECT_DOUBLE_EQ((GradientNoise{.signal = 1, .variance = 64}.RateGain(8, 8)), 1);
}

}  // namespace
}  // namespace covey::worker

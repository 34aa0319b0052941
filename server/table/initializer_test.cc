// SPDX-License-Identifier: Apache-2.0
#include "server/table/initializer.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

constexpr InitializerConfig kConfigs[] = {
    {.kind = InitializerKind::kZeros},
    {.kind = InitializerKind::kConstant, .a = 0.5f},
    {.kind = InitializerKind::kUniform, .a = -1, .b = 1, .seed = 7},
    {.kind = InitializerKind::kNormal, .a = 0, .b = 1, .seed = 7},
};

std::vector<float> Initialized(const InitializerConfig& config, uint64_t first, size_t count) {
  std::vector<float> values(count, -99);
  Initialize(config, first, values);
  return values;
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0, kurtosis = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments m;
  for (const float x : values) m.mean += x / values.size();
  for (const float x : values) m.variance += std::pow(x - m.mean, 2) / values.size();
  const double deviation = std::sqrt(m.variance);
  for (const float x : values) {
    m.skewness += std::pow((x - m.mean) / deviation, 3) / values.size();
    m.kurtosis += std::pow((x - m.mean) / deviation, 4) / values.size();
  }
  return m;
}

TEST(InitializerTest, AnySplitGivesTheSameBits) {
  constexpr size_t kCount = 5000;
  constexpr uint64_t kFirst = (uint64_t{1} << 37) - 100;  // crosses a power of two
  for (const InitializerConfig& config : kConfigs) {
    const std::vector<float> whole = Initialized(config, kFirst, kCount);
    Random random(3);
    for (size_t first = 0, count; first < kCount; first += count) {
      count = std::min(kCount - first, random.Below(200));
      const std::vector<float> part = Initialized(config, kFirst + first, count);
      ASSERT_EQ(std::memcmp(part.data(), whole.data() + first, count * sizeof(float)), 0)
          << "kind " << static_cast<int>(config.kind) << " from " << first;
    }
  }
}

TEST(InitializerTest, ConstantsAreExact) {
  EXPECT_EQ(Initialized(kConfigs[0], 10, 3), (std::vector<float>{0, 0, 0}));
  EXPECT_EQ(Initialized(kConfigs[1], 10, 2), (std::vector<float>{0.5, 0.5}));
}

TEST(InitializerTest, SeedsGiveDifferentValues) {
  for (InitializerConfig config : {kConfigs[2], kConfigs[3]}) {
    const std::vector<float> one = Initialized(config, 0, 1000);
    ++config.seed;
    const std::vector<float> other = Initialized(config, 0, 1000);
    // Neither the same numbers nor the same ones shifted by one place.
    int same = 0;
    for (size_t i = 0; i + 1 < one.size(); ++i)
      same += one[i] == other[i] || one[i + 1] == other[i];
    EXPECT_LE(same, 1);
  }
}

// A seed always gives the same values: a change here breaks the repetition of old runs. These were
// computed by other code (Python, whose inverse normal distribution follows the same paper).
TEST(InitializerTest, ValuesNeverChange) {
  EXPECT_EQ(Initialized({.kind = InitializerKind::kUniform, .a = -1, .b = 1, .seed = 1}, 0, 3),
            (std::vector<float>{0x1.4c0048p-1f, 0x1.8882ap-1f, -0x1.d1e55ep-2f}));
  EXPECT_EQ(Initialized({.kind = InitializerKind::kNormal, .a = 0, .b = 1, .seed = 1}, 0, 3),
            (std::vector<float>{0x1.dcf65ap-1f, 0x1.311356p+0f, -0x1.35e13ep-1f}));
}

TEST(InitializerTest, UniformHasItsMomentsAndStaysInside) {
  const std::vector<float> values =
      Initialized({.kind = InitializerKind::kUniform, .a = 2, .b = 6, .seed = 1}, 0, 1 << 20);
  EXPECT_GE(*std::min_element(values.begin(), values.end()), 2);
  EXPECT_LT(*std::max_element(values.begin(), values.end()), 6);
  const Moments m = MomentsOf(values);
  EXPECT_NEAR(m.mean, 4, 0.005);
  EXPECT_NEAR(m.variance, 16.0 / 12, 0.005);
  EXPECT_NEAR(m.skewness, 0, 0.01);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.01);
}

TEST(InitializerTest, UniformExcludesItsUpperEndEvenAfterRounding) {
  const float b = std::nextafter(1.0f, 2.0f);  // only one value lies in [1, b)
  for (const float x : Initialized({.kind = InitializerKind::kUniform, .a = 1, .b = b}, 0, 1000)) {
    ASSERT_EQ(x, 1);
  }
}

TEST(InitializerTest, NormalHasItsMomentsAndTails) {
  const std::vector<float> values =
      Initialized({.kind = InitializerKind::kNormal, .a = 3, .b = 0.5, .seed = 1}, 0, 1 << 20);
  const Moments m = MomentsOf(values);
  EXPECT_NEAR(m.mean, 3, 0.003);
  EXPECT_NEAR(m.variance, 0.25, 0.002);
  EXPECT_NEAR(m.skewness, 0, 0.01);
  EXPECT_NEAR(m.kurtosis, 3, 0.03);
  const auto beyond = [&](double deviations) {
    return std::count_if(values.begin(), values.end(),
                         [&](float x) { return std::abs(x - 3) > deviations * 0.5; }) /
           static_cast<double>(values.size());
  };
  EXPECT_NEAR(beyond(1), 0.31731, 0.003);
  EXPECT_NEAR(beyond(2), 0.04550, 0.001);
  EXPECT_NEAR(beyond(4), 6.334e-5, 4e-5);
}

TEST(InitializerTest, NeighborsAreNotCorrelated) {
  for (const InitializerConfig& config : {kConfigs[2], kConfigs[3]}) {
    const std::vector<float> values = Initialized(config, 0, 1 << 20);
    const Moments m = MomentsOf(values);
    for (const size_t distance : {1, 2, 784, 1024}) {
      double covariance = 0;
      for (size_t i = 0; i + distance < values.size(); ++i) {
        covariance += (values[i] - m.mean) * (values[i + distance] - m.mean) / values.size();
      }
      EXPECT_NEAR(covariance / m.variance, 0, 0.005) << distance;
    }
  }
}

TEST(InitializerTest, RefusesWhatIsOutOfRangeAndNamesIt) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto message = [](const InitializerConfig& config) {
    return std::string(config.Validate().message());
  };
  EXPECT_EQ(message({.kind = InitializerKind::kConstant, .a = kInfinity}),
            "initializer: constant a is inf; choose a finite value");
  EXPECT_EQ(message({.kind = InitializerKind::kUniform, .a = 1, .b = 1}),
            "initializer: uniform b is 1; choose a finite value above a");
  EXPECT_EQ(message({.kind = InitializerKind::kNormal, .b = -1}),
            "initializer: normal b is -1; choose a finite standard deviation of at least 0");
  EXPECT_FALSE(InitializerConfig{.kind = static_cast<InitializerKind>(9)}.Validate().ok());
  for (const InitializerConfig& config : kConfigs) EXPECT_TRUE(config.Validate().ok());
}

}  // namespace
}  // namespace covey::server

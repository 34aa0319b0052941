// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_tuner.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using Point = StepTuner::Point;

// As many values as StepTuning has: divisions into buckets, algorithms, bytes of a slice.
const std::vector<size_t> kSizes = {6, 7, 3};
constexpr std::array<double, 6> kBuckets = {160, 20, 6, 2, 1, 40};
// Of an algorithm: messages one after the other, and bytes on the busiest link per byte of a model.
constexpr std::array<double, 7> kDepths = {6, 2, 6, 6, 4, 4, 4};
constexpr std::array<double, 7> kBytes = {1.5, 2.4, 1.5, 1.2, 1.9, 1.5, 4};
constexpr std::array<double, 3> kSliceMegabytes = {1, 0.25, 0.0625};

struct Link {
  double seconds = 0;              // of a message
  double megabytes = 0;            // per second
  double computation_seconds = 0;  // of a step, beside which all buckets but the last travel
};

// Steps per second of a model of 40 MB.
double StepRate(const Link& link, const Point& point) {
  constexpr double kMegabytes = 40;
  const double buckets = kBuckets[point[0]];
  const double slices = std::max(1.0, kMegabytes / buckets / kSliceMegabytes[point[2]]);
  const double transfer = kBytes[point[1]] * kMegabytes / link.megabytes;
  // A bucket's slices travel one behind the other, and a message costs the processor something.
  const double bucket = kDepths[point[1]] * link.seconds + transfer / buckets +
                        kDepths[point[1]] * transfer / buckets / slices + 20e-6 * slices;
  const double hidden = std::min((buckets - 1) * bucket, link.computation_seconds);
  return 1 / (link.computation_seconds + buckets * bucket - hidden);
}

// One narrow peak, which is found only by following its slopes.
double Peak(const Point& point) {
  const auto away = [&point](size_t axis, double peak) {
    return std::abs(static_cast<double>(point[axis]) - peak);
  };
  return 100 / (1 + 0.3 * away(0, 4) + 0.4 * away(1, 5) + 0.2 * away(2, 2));
}

using Surface = std::function<double(const Point&)>;
std::vector<Surface> Surfaces() {
  std::vector<Surface> surfaces;
  for (const Link& link :
       {Link{.seconds = 0.005, .megabytes = 12}, Link{.seconds = 0.0001, .megabytes = 1200},
        Link{.seconds = 0.02, .megabytes = 1200, .computation_seconds = 0.2},
        Link{.seconds = 0.00001, .megabytes = 100, .computation_seconds = 1}}) {
    surfaces.push_back([link](const Point& point) { return StepRate(link, point); });
  }
  surfaces.emplace_back(Peak);
  return surfaces;
}

double BestRate(const Surface& surface) {
  double best = 0;
  for (size_t a = 0; a < kSizes[0]; ++a) {
    for (size_t b = 0; b < kSizes[1]; ++b) {
      for (size_t c = 0; c < kSizes[2]; ++c) best = std::max(best, surface({a, b, c}));
    }
  }
  return best;
}

double Measured(double rate, double noise, Random& random) {
  return rate * (1 + noise * (2 * random.Uniform() - 1));
}

// The true rate at the point that the search ends with.
double TunedRate(const Surface& surface, double noise, Random& random) {
  StepTuner tuner(kSizes, {1, 0, 0});
  while (!tuner.settled()) tuner.Add(Measured(surface(tuner.point()), noise, random));
  EXPECT_LE(tuner.samples(), kTunerSamplesMax);
  return surface(tuner.point());
}

double RandomSearchRate(const Surface& surface, double noise, Random& random) {
  Point best;
  double highest = 0;
  for (size_t i = 0; i < kTunerSamplesMax; ++i) {
    Point point;
    for (const size_t size : kSizes) point.push_back(random.Below(size));
    const double rate = Measured(surface(point), noise, random);
    if (rate <= highest) continue;
    highest = rate;
    best = point;
  }
  return surface(best);
}

TEST(StepTunerTest, ReachesNineTenthsOfTheBestRate) {
  for (const Surface& surface : Surfaces()) {
    for (uint64_t seed = 1; seed <= 100; ++seed) {
      Random random(seed);
      const double noise = seed % 2 == 0 ? 0.03 : 0;
      EXPECT_GE(TunedRate(surface, noise, random), 0.9 * BestRate(surface)) << "seed " << seed;
    }
  }
}

// Otherwise the test above would prove nothing.
TEST(StepTunerTest, TheFirstPointDoesNot) {
  for (const Surface& surface : Surfaces()) {
    EXPECT_LT(surface({1, 0, 0}), 0.9 * BestRate(surface));
  }
}

TEST(StepTunerTest, RandomSearchMissesANarrowPeak) {
  int misses = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    Random random(seed);
    if (RandomSearchRate(Peak, 0, random) < 0.9 * BestRate(Peak)) ++misses;
  }
  EXPECT_GE(misses, 50);
}

TEST(StepTunerTest, MeasuresTheFirstPointFirst) {
  StepTuner tuner({3, 2}, {2, 1});
  EXPECT_EQ(tuner.point(), (Point{2, 1}));
  EXPECT_FALSE(tuner.settled());
  tuner.Add(7);
  EXPECT_EQ(tuner.first_rate(), 7);
  EXPECT_NE(tuner.point(), (Point{2, 1}));
}

TEST(StepTunerTest, ARateThatWasTooHighByChanceIsFoundOut) {
  StepTuner tuner({4}, {0});
  bool was_high = false;
  while (!tuner.settled()) {
    const size_t value = tuner.point()[0];
    const bool is_lucky = value == 2 && !was_high;
    was_high = was_high || value == 2;
    tuner.Add(is_lucky ? 20 : value == 2 ? 5 : 10 + static_cast<double>(value));
  }
  EXPECT_EQ(tuner.point(), (Point{3}));
  EXPECT_EQ(tuner.rate(), 13);
}

TEST(StepTunerTest, EndsWhenThereIsNothingToChooseFrom) {
  StepTuner tuner({1, 1}, {0, 0});
  while (!tuner.settled()) tuner.Add(1);
  EXPECT_EQ(tuner.samples(), kTunerRepetitions);
}

TEST(StepTunerTest, MeasuresNoPointOfALineTwice) {
  StepTuner tuner({5, 4}, {0, 0});
  std::set<Point> seen;
  for (int i = 0; i < 8; ++i) {
    EXPECT_TRUE(seen.insert(tuner.point()).second);
    tuner.Add(static_cast<double>(tuner.point()[0]));
  }
}

}  // namespace
}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0

// LARS and LAMB: their kernels against naive loops, bit for bit, and the optimizers against their
// definitions in double, which keep the history instead of running state.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/optimizer/optimizer.h"
#include "common/optimizer/trust_kernels.h"
#include "common/tensor/testing/each_target.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::vector<float> RandomFloats(Random& random, size_t count, float low, float high) {
  std::vector<float> result(count);
  for (float& x : result) x = low + (high - low) * static_cast<float>(random.Uniform());
  return result;
}

// In the order that trust_kernels.h promises.
double NaiveNorm(std::span<const float> x) {
  double total = 0;
  for (size_t lane = 0; lane < kTrustLanes; ++lane) {
    double sum = 0;
    for (size_t i = lane; i < x.size(); i += kTrustLanes) sum += double{x[i]} * double{x[i]};
    total += sum;
  }
  return std::sqrt(total);
}

// Data on which the order of summation shows in the norms.
struct Case {
  explicit Case(Random& random, size_t length)
      : start(random.Below(16)),
        sum(RandomFloats(random, start + length, -5, 5)),
        values(RandomFloats(random, start + length, -2, 2)),
        slot0(RandomFloats(random, start + length, 0, 1)),
        slot1(RandomFloats(random, start + length, 0, 1)) {}

  std::span<float> Part(std::vector<float>& x) const { return std::span(x).subspan(start); }
  std::span<const float> Part(const std::vector<float>& x) const {
    return std::span(x).subspan(start);
  }

  size_t start;
  std::vector<float> sum, values, slot0, slot1;
};

using TrustKernelsTest = EachTargetTest;
COVEY_FOR_EACH_TARGET(TrustKernelsTest);

TEST_P(TrustKernelsTest, LarsInTheOrderOfTheNaiveLoop) {
  const LarsScalars s = {.gradient_scale = 1.0f / 7,
                         .weight_decay = 0.013f,
                         .learning_rate = 0.5f,
                         .momentum = 0.9f,
                         .trust = 0.02};
  Random random(3);
  for (size_t length = 0; length < 200; ++length) {
    const Case c(random, length);
    std::vector<float> gradient(c.Part(c.sum).begin(), c.Part(c.sum).end());
    for (float& g : gradient) g *= s.gradient_scale;
    const double norm = NaiveNorm(c.Part(c.values));
    const double divisor = NaiveNorm(gradient) + s.weight_decay * norm;
    const double exact = length == 0 ? 1 : s.trust * norm / divisor;
    // Another order of summation would change these bits, and one of 10^8 floats computed from
    // them.
    ASSERT_EQ(LarsRatio(s, c.Part(c.sum), c.Part(c.values)), exact) << length;
    const float ratio = static_cast<float>(exact);
    Case expected = c, actual = c;
    for (size_t i = c.start; i < c.start + length; ++i) {
      float& v = expected.slot0[i];
      v = s.momentum * v + ratio * (gradient[i - c.start] + s.weight_decay * c.values[i]);
      expected.values[i] -= s.learning_rate * v;
    }
    UpdateLars(s, c.Part(c.sum), c.Part(actual.values), c.Part(actual.values),
               InPlace(c.Part(actual.slot0)));
    ASSERT_TRUE(SameBits(actual.values, expected.values)) << length;
    ASSERT_TRUE(SameBits(actual.slot0, expected.slot0)) << length;
    Case other(random, length);
    UpdateLars(s, c.Part(c.sum), c.Part(c.values), other.Part(other.values),
               {.in = c.Part(c.slot0), .out = other.Part(other.slot0)});
    ASSERT_TRUE(SameBits(other.Part(other.values), c.Part(expected.values))) << length;
    ASSERT_TRUE(SameBits(other.Part(other.slot0), c.Part(expected.slot0))) << length;
  }
}

TEST_P(TrustKernelsTest, LambInTheOrderOfTheNaiveLoop) {
  const LambScalars s = {.gradient_scale = 1.0f / 7,
                         .weight_decay = 0.013f,
                         .learning_rate = 0.03f,
                         .mean_correction = 1.3f,
                         .root_correction = 1.7f,
                         .epsilon = 1e-8f,
                         .beta1 = 0.9f,
                         .one_minus_beta1 = 0.1f,
                         .beta2 = 0.999f,
                         .one_minus_beta2 = 0.001f};
  Random random(4);
  for (size_t length = 0; length < 200; ++length) {
    const Case c(random, length);
    Case expected = c, actual = c;
    std::vector<float> step(length);
    for (size_t i = c.start; i < c.start + length; ++i) {
      const float g = c.sum[i] * s.gradient_scale;
      float& m = expected.slot0[i];
      float& q = expected.slot1[i];
      m = s.beta1 * m + s.one_minus_beta1 * g;
      q = s.beta2 * q + s.one_minus_beta2 * g * g;
      step[i - c.start] = m * s.mean_correction / (std::sqrt(q) * s.root_correction + s.epsilon) +
                          s.weight_decay * c.values[i];
    }
    const double ratio = length == 0 ? 1 : NaiveNorm(c.Part(c.values)) / NaiveNorm(step);
    const float rate = static_cast<float>(s.learning_rate * ratio);
    for (size_t i = 0; i < length; ++i) expected.values[c.start + i] -= rate * step[i];
    UpdateLamb(s, c.Part(c.sum), c.Part(actual.values), c.Part(actual.values),
               InPlace(c.Part(actual.slot0)), InPlace(c.Part(actual.slot1)));
    ASSERT_TRUE(SameBits(actual.values, expected.values)) << length;
    ASSERT_TRUE(SameBits(actual.slot0, expected.slot0)) << length;
    ASSERT_TRUE(SameBits(actual.slot1, expected.slot1)) << length;
    Case other(random, length);
    UpdateLamb(s, c.Part(c.sum), c.Part(c.values), other.Part(other.values),
               {.in = c.Part(c.slot0), .out = other.Part(other.slot0)},
               {.in = c.Part(c.slot1), .out = other.Part(other.slot1)});
    ASSERT_TRUE(SameBits(other.Part(other.values), c.Part(expected.values))) << length;
    ASSERT_TRUE(SameBits(other.Part(other.slot0), c.Part(expected.slot0))) << length;
    ASSERT_TRUE(SameBits(other.Part(other.slot1), c.Part(expected.slot1))) << length;
  }
}

constexpr int kElements = 37;
constexpr int kUpdates = 100;
constexpr double kScale = 1.0 / 64;
constexpr double kTolerance = 3e-5;

using Vector = std::vector<double>;

double Norm(const Vector& x) {
  double squares = 0;
  for (const double element : x) squares += element * element;
  return std::sqrt(squares);
}

// Sum of decay^age * history[.][element].
double Decayed(const std::vector<Vector>& history, int element, double decay) {
  double sum = 0;
  for (size_t i = 0; i < history.size(); ++i) {
    sum += std::pow(decay, history.size() - 1 - i) * history[i][element];
  }
  return sum;
}

// The values after an update. `steps` (LARS) has ratio * (g + decay * w) of each update so far, and
// gets another one; `gradients` (LAMB) ends with this update's.
Vector Expected(const OptimizerConfig& config, double rate, const Vector& values,
                const std::vector<Vector>& gradients, std::vector<Vector>& steps) {
  const Vector& g = gradients.back();
  const double updates = static_cast<double>(gradients.size());
  const double decay = config.weight_decay;
  Vector after = values, step(kElements);
  if (config.kind == OptimizerKind::kLars) {
    const double ratio = config.trust_coefficient * Norm(values) / (Norm(g) + decay * Norm(values));
    for (int i = 0; i < kElements; ++i) step[i] = ratio * (g[i] + decay * values[i]);
    steps.push_back(step);
    for (int i = 0; i < kElements; ++i) after[i] -= rate * Decayed(steps, i, config.momentum);
    return after;
  }
  std::vector<Vector> squares = gradients;
  for (Vector& x : squares) {
    for (double& element : x) element *= element;
  }
  for (int i = 0; i < kElements; ++i) {
    const double mean = Decayed(gradients, i, config.beta1) * (1 - config.beta1) /
                        (1 - std::pow(config.beta1, updates));
    const double square = Decayed(squares, i, config.beta2) * (1 - config.beta2) /
                          (1 - std::pow(config.beta2, updates));
    step[i] = mean / (std::sqrt(square) + config.epsilon) + decay * values[i];
  }
  const double ratio = Norm(values) / Norm(step);
  for (int i = 0; i < kElements; ++i) after[i] -= rate * ratio * step[i];
  return after;
}

void ExpectFollowsItsDefinition(const OptimizerConfig& config, double rate) {
  const auto optimizer = MakeOptimizer(config);
  ASSERT_TRUE(optimizer.ok()) << optimizer.status();
  Random random(7);
  std::vector<float> values = RandomFloats(random, kElements, -1, 1);
  Vector expected(values.begin(), values.end());
  std::vector<Vector> gradients, steps;
  std::vector<std::vector<float>> state((*optimizer)->state_slots(), std::vector<float>(kElements));
  std::vector<SlotSpans> slots;
  for (std::vector<float>& slot : state) slots.push_back(InPlace(slot));
  double largest_move = 0;
  for (int update = 1; update <= kUpdates; ++update) {
    const std::vector<float> noise = RandomFloats(random, kElements, -1, 1);
    std::vector<float> gradient_sum(kElements);
    Vector gradient(kElements);
    for (int i = 0; i < kElements; ++i) {
      gradient_sum[i] = 64 * (values[i] + noise[i]);
      gradient[i] = gradient_sum[i] * kScale;
    }
    gradients.push_back(gradient);
    const Vector before = expected;
    expected = Expected(config, rate, before, gradients, steps);
    (*optimizer)
        ->Apply({.learning_rate = rate,
                 .gradient_scale = kScale,
                 .update_index = static_cast<uint64_t>(update)},
                gradient_sum, values, values, slots);
    for (int i = 0; i < kElements; ++i) {
      ASSERT_NEAR(values[i], expected[i], kTolerance) << "update " << update << " element " << i;
      largest_move = std::max(largest_move, std::abs(expected[i] - before[i]));
    }
  }
  EXPECT_GT(largest_move, 0.01);  // otherwise the comparison above proves nothing
}

TEST(TrustGoldenTest, Lars) {
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kLars, .trust_coefficient = 0.05}, 0.5);
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kLars,
                              .weight_decay = 0.1,
                              .momentum = 0.5,
                              .trust_coefficient = 0.02},
                             1);
}

TEST(TrustGoldenTest, Lamb) {
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kLamb}, 0.02);
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kLamb,
                              .weight_decay = 0.1,
                              .beta1 = 0.5,
                              .beta2 = 0.9,
                              .epsilon = 0.01},
                             0.02);
}

// By hand: norm(values) = 5, norm(gradient) = 13.
TEST(TrustGoldenTest, FirstStepOfLarsMovesByTheTrustRatio) {
  const auto optimizer =
      MakeOptimizer({.kind = OptimizerKind::kLars, .trust_coefficient = 0.5}).value();
  std::vector<float> values = {3, 4}, velocity = {0, 0};
  const std::vector<float> gradient = {5, 12};
  const std::vector<SlotSpans> slots = {InPlace(velocity)};
  optimizer->Apply({.learning_rate = 1}, gradient, values, values, slots);
  EXPECT_FLOAT_EQ(values[0], 3 - 2.5f / 13 * 5);
  EXPECT_FLOAT_EQ(values[1], 4 - 2.5f / 13 * 12);
}

// By hand: at the first step each element of r is the gradient's sign, so norm(r) = 2.
TEST(TrustGoldenTest, FirstStepOfLambMovesByTheNormOfTheValues) {
  const auto optimizer = MakeOptimizer({.kind = OptimizerKind::kLamb}).value();
  std::vector<float> values = {6, 0, 0, 8}, mean(4), square(4);
  const std::vector<float> gradient = {3, -1, 40, 7};
  const std::vector<SlotSpans> slots = {InPlace(mean), InPlace(square)};
  optimizer->Apply({.learning_rate = 0.1}, gradient, values, values, slots);
  EXPECT_NEAR(values[0], 5.5, 1e-5);
  EXPECT_NEAR(values[1], 0.5, 1e-5);
  EXPECT_NEAR(values[2], -0.5, 1e-5);
  EXPECT_NEAR(values[3], 7.5, 1e-5);
}

TEST(TrustGoldenTest, ValuesMayLeaveZero) {
  for (const OptimizerKind kind : {OptimizerKind::kLars, OptimizerKind::kLamb}) {
    const auto optimizer = MakeOptimizer({.kind = kind}).value();
    std::vector<std::vector<float>> state(optimizer->state_slots(), std::vector<float>(2));
    std::vector<SlotSpans> slots;
    for (std::vector<float>& slot : state) slots.push_back(InPlace(slot));
    std::vector<float> values = {0, 0};
    const std::vector<float> gradient = {1, -1}, nothing = {0, 0};
    optimizer->Apply({.learning_rate = 0.5}, nothing, values, values, slots);
    EXPECT_EQ(values, nothing);
    optimizer->Apply({.learning_rate = 0.5, .update_index = 2}, gradient, values, values, slots);
    EXPECT_LT(values[0], -0.1f);
    EXPECT_GT(values[1], 0.1f);
  }
}

}  // namespace
}  // namespace covey

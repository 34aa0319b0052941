// SPDX-License-Identifier: Apache-2.0

// Every optimizer against its definition in double, written without the running state that the code
// keeps: a velocity is an explicit weighted sum over the history, and Adam's bias correction a
// weighted average.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/optimizer/optimizer.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr int kElements = 37;
constexpr int kUpdates = 200;
constexpr double kScale = 1.0 / 64;
// Two hundred roundings of values near 1 to 24 bits: each at most 6e-8, growing at worst in
// proportion.
constexpr double kTolerance = 2e-5;

double LearningRate(int update) { return 0.05 / (1 + 0.01 * update); }

// History of one element: gradients[i] belongs to update i + 1.
using History = std::vector<double>;

double DecayedSum(const History& x, double decay) {
  double sum = 0;
  for (size_t i = 0; i < x.size(); ++i) sum += std::pow(decay, x.size() - 1 - i) * x[i];
  return sum;
}

double DecayedAverage(const History& x, double decay) {
  return DecayedSum(x, decay) / DecayedSum(History(x.size(), 1.0), decay);
}

History Squares(History x) {
  for (double& element : x) element *= element;
  return x;
}

// Of delayed Nesterov: the means of the whole blocks of `delay` gradients so far.
History BlockMeans(const History& x, size_t delay) {
  History means;
  for (size_t end = delay; end <= x.size(); end += delay) {
    means.push_back(std::accumulate(x.begin() + end - delay, x.begin() + end, 0.0) / delay);
  }
  return means;
}

// The value after an update, from the value before, the rate and the history that ends with this
// update.
double Expected(const OptimizerConfig& config, double value, double rate, const History& g) {
  switch (config.kind) {
    case OptimizerKind::kSgd:
      return value - rate * g.back();
    case OptimizerKind::kMomentum:
      return value - rate * DecayedSum(g, config.momentum);
    case OptimizerKind::kNesterov:
      return value - rate * (g.back() + config.momentum * DecayedSum(g, config.momentum));
    case OptimizerKind::kAdagrad: {
      const History squares = Squares(g);
      const double sum = std::accumulate(squares.begin(), squares.end(), 0.0);
      return value - rate * g.back() / (std::sqrt(sum) + config.epsilon);
    }
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW: {
      const double mean = DecayedAverage(g, config.beta1);
      const double root = std::sqrt(DecayedAverage(Squares(g), config.beta2));
      const double decay =
          config.kind == OptimizerKind::kAdamW ? rate * config.weight_decay * value : 0;
      return value - decay - rate * mean / (root + config.epsilon);
    }
    case OptimizerKind::kDelayedNesterov: {
      const double step = g.back() / config.delay;
      if (g.size() % config.delay != 0) return value - rate * step;
      const History means = BlockMeans(g, config.delay);
      return value - rate * (step + config.momentum * DecayedSum(means, config.momentum));
    }
    case OptimizerKind::kLars:
    case OptimizerKind::kLamb:
      break;  // not element-wise: trust_golden_test.cc
    case OptimizerKind::kRowwiseAdagrad:
    case OptimizerKind::kFtrl:
      break;  // of rows: row_optimizer_test.cc
    case OptimizerKind::kVectors:
      break;  // changes no value
  }
  return value;
}

void ExpectFollowsItsDefinition(const OptimizerConfig& config) {
  const auto optimizer = MakeOptimizer(config);
  ASSERT_TRUE(optimizer.ok()) << optimizer.status();
  Random random(7);

  std::vector<float> values(kElements);
  for (float& value : values) value = static_cast<float>(random.Uniform() * 2 - 1);
  std::vector<double> expected(values.begin(), values.end());
  std::vector<History> histories(kElements);

  std::vector<std::vector<float>> state((*optimizer)->state_slots(), std::vector<float>(kElements));
  std::vector<SlotSpans> slots;
  for (std::vector<float>& slot : state) slots.push_back(InPlace(slot));

  double largest_move = 0;
  for (int update = 1; update <= kUpdates; ++update) {
    std::vector<float> gradient_sum(kElements);
    for (int i = 0; i < kElements; ++i) {
      // Pulls towards 0 with noise, as training does.
      gradient_sum[i] = static_cast<float>(64 * (values[i] + random.Uniform() * 2 - 1));
      const double coupled_decay =
          config.kind == OptimizerKind::kAdamW ? 0 : config.weight_decay * expected[i];
      histories[i].push_back(gradient_sum[i] * kScale + coupled_decay);
      const double before = expected[i];
      expected[i] = Expected(config, before, LearningRate(update), histories[i]);
      largest_move = std::max(largest_move, std::abs(expected[i] - before));
    }
    (*optimizer)
        ->Apply({.learning_rate = LearningRate(update),
                 .gradient_scale = kScale,
                 .update_index = static_cast<uint64_t>(update)},
                gradient_sum, values, values, slots);
    for (int i = 0; i < kElements; ++i) {
      ASSERT_NEAR(values[i], expected[i], kTolerance) << "update " << update << " element " << i;
    }
  }
  EXPECT_GT(largest_move, 0.01);  // otherwise the comparison above proves nothing
}

TEST(OptimizerGoldenTest, Sgd) {
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kSgd});
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kSgd, .weight_decay = 0.1});
}

TEST(OptimizerGoldenTest, Momentum) {
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kMomentum});
  ExpectFollowsItsDefinition(
      {.kind = OptimizerKind::kMomentum, .weight_decay = 0.1, .momentum = 0.5});
}

TEST(OptimizerGoldenTest, Nesterov) {
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kNesterov});
  ExpectFollowsItsDefinition(
      {.kind = OptimizerKind::kNesterov, .weight_decay = 0.1, .momentum = 0.5});
}

TEST(OptimizerGoldenTest, Adagrad) {
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kAdagrad});
  ExpectFollowsItsDefinition(
      {.kind = OptimizerKind::kAdagrad, .weight_decay = 0.1, .epsilon = 0.01});
}

TEST(OptimizerGoldenTest, Adam) {
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kAdam});
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kAdam,
                              .weight_decay = 0.1,
                              .beta1 = 0.5,
                              .beta2 = 0.9,
                              .epsilon = 0.01});
}

TEST(OptimizerGoldenTest, AdamW) {
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kAdamW, .weight_decay = 0.1});
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kAdamW,
                              .weight_decay = 0.5,
                              .beta1 = 0.5,
                              .beta2 = 0.9,
                              .epsilon = 0.01});
}

TEST(OptimizerGoldenTest, DelayedNesterov) {
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kDelayedNesterov});
  ExpectFollowsItsDefinition(
      {.kind = OptimizerKind::kDelayedNesterov, .weight_decay = 0.1, .momentum = 0.5, .delay = 4});
  ExpectFollowsItsDefinition({.kind = OptimizerKind::kDelayedNesterov, .delay = 7});
}

// Computed by hand, so that a mistake shared by the code and the definitions above would show.
TEST(OptimizerGoldenTest, FirstStepOfAdamMovesByTheRate) {
  const auto optimizer = MakeOptimizer({.kind = OptimizerKind::kAdam});
  ASSERT_TRUE(optimizer.ok());
  std::vector<float> values = {1, 1, 1}, mean(3), square(3);
  const std::vector<float> gradient = {1e-3f, -40, 7};
  const std::vector<SlotSpans> slots = {InPlace(mean), InPlace(square)};
  (*optimizer)->Apply({.learning_rate = 0.25}, gradient, values, values, slots);
  EXPECT_NEAR(values[0], 0.75, 1e-5);
  EXPECT_NEAR(values[1], 1.25, 1e-6);
  EXPECT_NEAR(values[2], 0.75, 1e-6);
}

TEST(OptimizerGoldenTest, SecondStepOfMomentumByHand) {
  const auto optimizer = MakeOptimizer({.kind = OptimizerKind::kMomentum, .momentum = 0.5});
  ASSERT_TRUE(optimizer.ok());
  std::vector<float> values = {8}, velocity = {0};
  const std::vector<float> gradient = {2};
  const std::vector<SlotSpans> slots = {InPlace(velocity)};
  (*optimizer)->Apply({.learning_rate = 1}, gradient, values, values, slots);
  EXPECT_EQ(values[0], 6);
  (*optimizer)->Apply({.learning_rate = 1, .update_index = 2}, gradient, values, values, slots);
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(velocity[0], 3);
}

TEST(OptimizerGoldenTest, TwoUpdatesOfDelayedNesterovByHand) {
  const auto optimizer =
      MakeOptimizer({.kind = OptimizerKind::kDelayedNesterov, .momentum = 0.5, .delay = 2});
  ASSERT_TRUE(optimizer.ok());
  std::vector<float> values = {8}, velocity = {0}, held = {0};
  const std::vector<SlotSpans> slots = {InPlace(velocity), InPlace(held)};
  const std::vector<float> first = {2}, second = {4};
  (*optimizer)->Apply({.learning_rate = 1}, first, values, values, slots);
  EXPECT_EQ(values[0], 7);
  EXPECT_EQ(velocity[0], 0);
  EXPECT_EQ(held[0], 2);
  (*optimizer)->Apply({.learning_rate = 1, .update_index = 2}, second, values, values, slots);
  EXPECT_EQ(values[0], 3.5);  // 7 - 4/2 - 0.5 * 3
  EXPECT_EQ(velocity[0], 3);
  EXPECT_EQ(held[0], 0);
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0

// The promises that every optimizer keeps, with any formula. For a new kind, add it to kConfigs.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/optimizer/optimizer.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

const OptimizerConfig kConfigs[] = {
    {.kind = OptimizerKind::kSgd, .weight_decay = 0.01},
    {.kind = OptimizerKind::kMomentum, .weight_decay = 0.01},
    {.kind = OptimizerKind::kNesterov, .weight_decay = 0.01},
    {.kind = OptimizerKind::kAdagrad, .weight_decay = 0.01},
    {.kind = OptimizerKind::kAdam, .weight_decay = 0.01},
    {.kind = OptimizerKind::kAdamW, .weight_decay = 0.01},
    {.kind = OptimizerKind::kLars, .weight_decay = 0.01, .trust_coefficient = 0.1},
    {.kind = OptimizerKind::kLamb, .weight_decay = 0.01},
    {.kind = OptimizerKind::kDelayedNesterov, .weight_decay = 0.01, .delay = 3},
    {.kind = OptimizerKind::kVectors, .vectors = 3},
};

std::vector<float> RandomFloats(uint64_t seed, size_t count) {
  Random random(seed);
  std::vector<float> result(count);
  for (float& x : result) x = static_cast<float>(random.Uniform() * 4 - 2);
  return result;
}

bool SameBits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// Values and slots of a shard, as its owner stores them.
struct State {
  State(const Optimizer& optimizer, size_t count)
      : values(RandomFloats(1, count)), slots(optimizer.state_slots(), std::vector<float>(count)) {}

  // In place.
  std::vector<SlotSpans> Slots(size_t first, size_t count) {
    std::vector<SlotSpans> result;
    for (auto& slot : slots) result.push_back(InPlace(std::span(slot).subspan(first, count)));
    return result;
  }
  bool operator==(const State& other) const {
    if (!SameBits(values, other.values)) return false;
    for (size_t i = 0; i < slots.size(); ++i) {
      if (!SameBits(slots[i], other.slots[i])) return false;
    }
    return true;
  }

  std::vector<float> values;
  std::vector<std::vector<float>> slots;
};

class OptimizerConformanceTest : public testing::TestWithParam<OptimizerConfig> {
 protected:
  static constexpr size_t kCount = 1000;
  static constexpr uint64_t kUpdates = 10;

  OptimizerConformanceTest() : optimizer_(MakeOptimizer(GetParam()).value()) {}

  static UpdateContext Context(uint64_t update) {
    return {.learning_rate = 0.01, .gradient_scale = 1.0 / 48, .update_index = update};
  }
  static std::vector<float> GradientSum(uint64_t update) {
    return RandomFloats(100 + update, kCount);
  }
  // Ten updates in place, on all elements at once.
  State Whole() const {
    State state(*optimizer_, kCount);
    for (uint64_t update = 1; update <= kUpdates; ++update) {
      optimizer_->Apply(Context(update), GradientSum(update), state.values, state.values,
                        state.Slots(0, kCount));
    }
    return state;
  }

  const std::unique_ptr<Optimizer> optimizer_;
};

TEST_P(OptimizerConformanceTest, MovesEveryValue) {
  const State before(*optimizer_, kCount);
  const State after = Whole();
  // An update of vectors moves the first of them in place of the values.
  const bool moves_slot = GetParam().kind == OptimizerKind::kVectors;
  const std::vector<float>& from = moves_slot ? before.slots[0] : before.values;
  const std::vector<float>& to = moves_slot ? after.slots[0] : after.values;
  for (size_t i = 0; i < kCount; ++i) ASSERT_NE(from[i], to[i]) << i;
}

// Values and slots, in each combination of in place and out of place.
TEST_P(OptimizerConformanceTest, OutOfPlaceGivesTheBitsOfInPlaceAndLeavesTheInput) {
  const State whole = Whole();
  const size_t slots = whole.slots.size();
  for (uint32_t out_of_place = 0; out_of_place < 2u << slots; ++out_of_place) {
    SCOPED_TRACE(out_of_place);
    const auto is_out_of_place = [&](size_t array) { return (out_of_place >> array & 1) != 0; };
    State state(*optimizer_, kCount);
    for (uint64_t update = 1; update <= kUpdates; ++update) {
      const State before = state;
      State fresh = state;
      fresh.values.assign(kCount, std::numeric_limits<float>::quiet_NaN());
      for (auto& slot : fresh.slots) slot = fresh.values;
      std::vector<SlotSpans> spans;
      for (size_t i = 0; i < slots; ++i) {
        spans.push_back({.in = state.slots[i],
                         .out = is_out_of_place(1 + i) ? fresh.slots[i] : state.slots[i]});
      }
      optimizer_->Apply(Context(update), GradientSum(update), state.values,
                        is_out_of_place(0) ? fresh.values : state.values, spans);
      if (is_out_of_place(0)) {
        ASSERT_TRUE(SameBits(state.values, before.values));
        state.values = fresh.values;
      }
      for (size_t i = 0; i < slots; ++i) {
        if (!is_out_of_place(1 + i)) continue;
        ASSERT_TRUE(SameBits(state.slots[i], before.slots[i])) << i;
        state.slots[i] = fresh.slots[i];
      }
    }
    EXPECT_TRUE(state == whole);
  }
}

// Slices of random lengths, zero among them, start at any alignment and run in any order.
TEST_P(OptimizerConformanceTest, SlicesGiveTheSameBitsAsTheWholeWhereElementwise) {
  Random random(5);
  State state(*optimizer_, kCount);
  for (uint64_t update = 1; update <= kUpdates; ++update) {
    const std::vector<float> gradient_sum = GradientSum(update);
    for (size_t end = kCount, first; end > 0; end = first) {
      first = end - std::min(end, random.Below(70));
      const size_t count = end - first;
      const std::span<float> values = std::span(state.values).subspan(first, count);
      optimizer_->Apply(Context(update), std::span(gradient_sum).subspan(first, count), values,
                        values, state.Slots(first, count));
    }
  }
  EXPECT_EQ(state == Whole(), IsElementwise(GetParam().kind));
}

// An owner may keep its arrays at any alignment.
TEST_P(OptimizerConformanceTest, AlignmentDoesNotShow) {
  for (size_t start = 1; start < 16; start += 3) {
    State state(*optimizer_, start + kCount);
    const std::vector<float> values = State(*optimizer_, kCount).values;
    std::copy(values.begin(), values.end(), state.values.begin() + start);
    std::vector<float> gradient_sum(start + kCount);
    for (uint64_t update = 1; update <= kUpdates; ++update) {
      const std::vector<float> gradient = GradientSum(update);
      std::copy(gradient.begin(), gradient.end(), gradient_sum.begin() + start);
      const std::span<float> shifted = std::span(state.values).subspan(start);
      optimizer_->Apply(Context(update), std::span(gradient_sum).subspan(start), shifted, shifted,
                        state.Slots(start, kCount));
    }
    ASSERT_TRUE(SameBits(std::span(state.values).subspan(start), Whole().values)) << start;
  }
}

// Only kinds with momentum may read the context's, and it must replace theirs.
TEST_P(OptimizerConformanceTest, TheContextsMomentumReplacesTheConfigs) {
  OptimizerConfig other = GetParam();
  other.momentum = 0.25;
  const auto configured = MakeOptimizer(other).value();
  State expected(*configured, kCount), governed(*optimizer_, kCount), own(*optimizer_, kCount);
  for (uint64_t update = 1; update <= kUpdates; ++update) {
    UpdateContext context = Context(update);
    configured->Apply(context, GradientSum(update), expected.values, expected.values,
                      expected.Slots(0, kCount));
    context.momentum = 0.25;
    optimizer_->Apply(context, GradientSum(update), governed.values, governed.values,
                      governed.Slots(0, kCount));
    context.momentum = GetParam().momentum;
    optimizer_->Apply(context, GradientSum(update), own.values, own.values, own.Slots(0, kCount));
  }
  EXPECT_TRUE(governed == expected);
  EXPECT_TRUE(own == Whole());
  EXPECT_EQ(governed == own, !HasMomentum(GetParam().kind));
}

TEST_P(OptimizerConformanceTest, GradientScaleIsFoldedIn) {
  // Powers of two, so that scaling before and scaling inside round equally.
  State scaled_inside(*optimizer_, kCount), scaled_before(*optimizer_, kCount);
  for (uint64_t update = 1; update <= kUpdates; ++update) {
    std::vector<float> gradient = GradientSum(update);
    optimizer_->Apply({.learning_rate = 0.01, .gradient_scale = 0.125, .update_index = update},
                      gradient, scaled_inside.values, scaled_inside.values,
                      scaled_inside.Slots(0, kCount));
    for (float& x : gradient) x *= 0.125f;
    optimizer_->Apply({.learning_rate = 0.01, .gradient_scale = 1, .update_index = update},
                      gradient, scaled_before.values, scaled_before.values,
                      scaled_before.Slots(0, kCount));
  }
  EXPECT_TRUE(scaled_inside == scaled_before);
}

TEST_P(OptimizerConformanceTest, NothingToUpdateIsFine) {
  State empty(*optimizer_, 0);
  optimizer_->Apply(Context(1), {}, empty.values, empty.values, empty.Slots(0, 0));
}

TEST_P(OptimizerConformanceTest, WrongLengthsAreABug) {
  State state(*optimizer_, 4);
  const std::vector<float> short_gradient(3);
  EXPECT_DEATH(
      optimizer_->Apply(Context(1), short_gradient, state.values, state.values, state.Slots(0, 4)),
      "gradient_sum.size");
  if (state.slots.empty()) return;
  std::vector<SlotSpans> slots = state.Slots(0, 4);
  slots.back().in = slots.back().in.first(3);
  EXPECT_DEATH(
      optimizer_->Apply(Context(1), std::vector<float>(4), state.values, state.values, slots),
      "slot.in.size");
}

INSTANTIATE_TEST_SUITE_P(AllKinds, OptimizerConformanceTest, testing::ValuesIn(kConfigs),
                         [](const auto& test) {
                           return std::string(OptimizerName(test.param.kind));
                         });

TEST(OptimizerTest, DelayedNesterovWithoutDelayIsNesterovBitForBit) {
  const auto nesterov = MakeOptimizer({.kind = OptimizerKind::kNesterov}).value();
  const auto delayed = MakeOptimizer({.kind = OptimizerKind::kDelayedNesterov}).value();
  State expected(*nesterov, 100), actual(*delayed, 100);
  for (uint64_t update = 1; update <= 10; ++update) {
    const UpdateContext context = {.learning_rate = 0.01, .update_index = update};
    const std::vector<float> gradient = RandomFloats(update, 100);
    nesterov->Apply(context, gradient, expected.values, expected.values, expected.Slots(0, 100));
    delayed->Apply(context, gradient, actual.values, actual.values, actual.Slots(0, 100));
  }
  EXPECT_TRUE(SameBits(actual.values, expected.values));
}

TEST(OptimizerConfigTest, RefusesWhatIsOutOfRangeAndNamesIt) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto message = [](const OptimizerConfig& config) {
    return std::string(MakeOptimizer(config).status().message());
  };
  EXPECT_EQ(message({.momentum = 1}), "optimizer: momentum is 1; choose a value in [0, 1)");
  EXPECT_EQ(message({.weight_decay = -0.5}),
            "optimizer: weight_decay is -0.5; choose a value in [0, 1]");
  EXPECT_EQ(message({.beta1 = kNan}), "optimizer: beta1 is nan; choose a value in [0, 1)");
  EXPECT_EQ(message({.beta2 = 1}), "optimizer: beta2 is 1; choose a value in [0, 1)");
  EXPECT_EQ(message({.epsilon = 0}), "optimizer: epsilon is 0; choose a value in [1e-12, 1]");
  EXPECT_EQ(message({.trust_coefficient = 0}),
            "optimizer: trust_coefficient is 0; choose a value in [1e-12, 1]");
  EXPECT_EQ(message({.delay = 0}), "optimizer: delay is 0; choose a value in [1, 4096]");
  EXPECT_FALSE(MakeOptimizer({.kind = static_cast<OptimizerKind>(99)}).ok());
  EXPECT_TRUE(MakeOptimizer({}).ok());
}

}  // namespace
}  // namespace covey

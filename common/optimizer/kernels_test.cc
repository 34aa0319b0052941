// SPDX-License-Identifier: Apache-2.0

// Every kernel against a naive loop that handles one element at a time, compared bit for bit: the
// instruction set, the tail and the alignment must not show.

#include "common/optimizer/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/tensor/testing/each_target.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr size_t kLengthMax = 300;
constexpr GradientScalars kGradient = {.gradient_scale = 1.0f / 7, .weight_decay = 0.013f};

// The payload of a NaN is not promised.
bool SameBits(std::span<const float> a, std::span<const float> b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](float x, float y) {
    return (std::isnan(x) && std::isnan(y)) ||
           std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

// Some are the ones with rules of their own.
std::vector<float> RandomFloats(Random& random, size_t count, float low, float high) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  constexpr float kSpecial[] = {0.0f,      -0.0f,      1e-40f,
                                -1e-40f,   3e38f,      -3e38f,
                                kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> result(count);
  for (float& x : result) {
    x = random.Chance(0.05) ? kSpecial[random.Below(std::size(kSpecial))]
                            : low + (high - low) * static_cast<float>(random.Uniform());
  }
  return result;
}

// One element of an update: its gradient sum and value, and its two slots, which it may change.
// Returns the new value.
using NaiveUpdate = std::function<float(float sum, float value, float& slot0, float& slot1)>;
using Kernel = std::function<void(std::span<const float> sum, std::span<const float> in,
                                  std::span<float> out, SlotSpans slot0, SlotSpans slot1)>;

// `slots`: how many of the slots the kernel writes.
void ExpectSameBits(int slots, const Kernel& kernel, const NaiveUpdate& naive) {
  Random random(42);
  for (size_t length = 0; length <= kLengthMax; ++length) {
    const size_t start = random.Below(16);  // so that no alignment can be relied on
    const size_t total = start + length;
    const std::vector<float> sum = RandomFloats(random, total, -5, 5);
    const std::vector<float> values = RandomFloats(random, total, -2, 2);
    const std::vector<float> slot0 = RandomFloats(random, total, 0, 1);
    const std::vector<float> slot1 = RandomFloats(random, total, 0, 1);

    std::vector<float> expected = values, expected0 = slot0, expected1 = slot1;
    for (size_t i = start; i < total; ++i) {
      expected[i] = naive(sum[i], values[i], expected0[i], expected1[i]);
    }

    std::vector<float> in_place = values, actual0 = slot0, actual1 = slot1;
    const auto from_start = [start](auto& x) { return std::span(x).subspan(start); };
    kernel(from_start(sum), from_start(in_place), from_start(in_place),
           InPlace(from_start(actual0)), InPlace(from_start(actual1)));
    ASSERT_TRUE(SameBits(in_place, expected)) << "in place, length " << length;
    ASSERT_TRUE(SameBits(actual0, expected0)) << "length " << length;
    ASSERT_TRUE(SameBits(actual1, expected1)) << "length " << length;

    std::vector<float> out(total, 77), out0 = out, out1 = out;
    kernel(from_start(sum), from_start(values), from_start(out),
           {.in = from_start(slot0), .out = from_start(out0)},
           {.in = from_start(slot1), .out = from_start(out1)});
    const auto same = [&from_start](const auto& a, const auto& b) {
      return SameBits(from_start(a), from_start(b));
    };
    ASSERT_TRUE(same(out, expected)) << "out of place, length " << length;
    ASSERT_TRUE(slots < 1 || same(out0, expected0)) << "out of place, length " << length;
    ASSERT_TRUE(slots < 2 || same(out1, expected1)) << "out of place, length " << length;
  }
}

float NaiveGradient(float sum, float value) {
  return sum * kGradient.gradient_scale + kGradient.weight_decay * value;
}

using KernelsTest = EachTargetTest;
COVEY_FOR_EACH_TARGET(KernelsTest);

TEST_P(KernelsTest, Sgd) {
  const SgdScalars s = {.gradient = kGradient, .learning_rate = 0.03f};
  ExpectSameBits(
      0, [&](auto sum, auto in, auto out, auto, auto) { UpdateSgd(s, sum, in, out); },
      [&](float sum, float value, float&, float&) {
        return value - s.learning_rate * NaiveGradient(sum, value);
      });
}

TEST_P(KernelsTest, Momentum) {
  const MomentumScalars s = {.gradient = kGradient, .learning_rate = 0.03f, .momentum = 0.9f};
  ExpectSameBits(
      1,
      [&](auto sum, auto in, auto out, auto slot, auto) { UpdateMomentum(s, sum, in, out, slot); },
      [&](float sum, float value, float& velocity, float&) {
        velocity = s.momentum * velocity + NaiveGradient(sum, value);
        return value - s.learning_rate * velocity;
      });
}

TEST_P(KernelsTest, Nesterov) {
  const MomentumScalars s = {.gradient = kGradient, .learning_rate = 0.03f, .momentum = 0.9f};
  ExpectSameBits(
      1,
      [&](auto sum, auto in, auto out, auto slot, auto) { UpdateNesterov(s, sum, in, out, slot); },
      [&](float sum, float value, float& velocity, float&) {
        const float g = NaiveGradient(sum, value);
        velocity = s.momentum * velocity + g;
        return value - s.learning_rate * (g + s.momentum * velocity);
      });
}

TEST_P(KernelsTest, Adagrad) {
  const AdagradScalars s = {.gradient = kGradient, .learning_rate = 0.03f, .epsilon = 1e-8f};
  ExpectSameBits(
      1,
      [&](auto sum, auto in, auto out, auto slot, auto) { UpdateAdagrad(s, sum, in, out, slot); },
      [&](float sum, float value, float& squares, float&) {
        const float g = NaiveGradient(sum, value);
        squares += g * g;
        return value - s.learning_rate * g / (std::sqrt(squares) + s.epsilon);
      });
}

TEST_P(KernelsTest, Adam) {
  const AdamScalars s = {.gradient = kGradient,
                         .rate = 0.03f,
                         .root_correction = 1.7f,
                         .epsilon = 1e-8f,
                         .keep = 0.999f,
                         .beta1 = 0.9f,
                         .one_minus_beta1 = 0.1f,
                         .beta2 = 0.999f,
                         .one_minus_beta2 = 0.001f};
  ExpectSameBits(
      2,
      [&](auto sum, auto in, auto out, auto slot0, auto slot1) {
        UpdateAdam(s, sum, in, out, slot0, slot1);
      },
      [&](float sum, float value, float& mean, float& square) {
        const float g = NaiveGradient(sum, value);
        mean = s.beta1 * mean + s.one_minus_beta1 * g;
        square = s.beta2 * square + s.one_minus_beta2 * g * g;
        const float divisor = std::sqrt(square) * s.root_correction + s.epsilon;
        return s.keep * value - s.rate * mean / divisor;
      });
}

TEST_P(KernelsTest, DelayedNesterov) {
  const DelayedNesterovScalars s = {
      .gradient = kGradient, .learning_rate = 0.03f, .momentum = 0.9f, .share = 1.0f / 3};
  ExpectSameBits(
      2,
      [&](auto sum, auto in, auto out, auto slot0, auto slot1) {
        HoldDelayedNesterov(s, sum, in, out, slot0, slot1);
      },
      [&](float sum, float value, float&, float& held) {
        const float g = NaiveGradient(sum, value);
        held += g;
        return value - s.learning_rate * (g * s.share);
      });
  ExpectSameBits(
      2,
      [&](auto sum, auto in, auto out, auto slot0, auto slot1) {
        ReleaseDelayedNesterov(s, sum, in, out, slot0, slot1);
      },
      [&](float sum, float value, float& velocity, float& held) {
        const float g = NaiveGradient(sum, value);
        velocity = s.momentum * velocity + (held + g) * s.share;
        held = 0;
        return value - s.learning_rate * (g * s.share + s.momentum * velocity);
      });
}

TEST_P(KernelsTest, CompensateDelay) {
  // The first slot is used as the previous values.
  constexpr float kStrength = 0.02f;
  ExpectSameBits(
      0,
      [&](auto sum, auto in, auto out, auto slot0, auto) {
        CompensateDelay(kStrength, sum, in, slot0.in, out);
      },
      [&](float sum, float value, float& previous, float&) {
        const float moved = sum + kStrength * sum * sum * (value - previous);
        return std::isfinite(moved) ? moved : sum;
      });
}

TEST_P(KernelsTest, CompensationKeepsWhatItWouldMakeInfinite) {
  const std::vector<float> sum = {3e30f, -3e30f, 2};
  const std::vector<float> values = {2, 2, 2}, previous = {1, 3, 1};
  std::vector<float> out(3);
  CompensateDelay(0.5f, sum, values, previous, out);
  EXPECT_EQ(out, (std::vector<float>{3e30f, -3e30f, 4}));
}

TEST_P(KernelsTest, AllFiniteFindsEachKindAtEachPlace) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  EXPECT_TRUE(AllFinite({}));
  for (size_t length = 1; length <= kLengthMax; ++length) {
    std::vector<float> x(length, std::numeric_limits<float>::max());
    ASSERT_TRUE(AllFinite(x));
    ASSERT_EQ(FirstNonFinite(x), std::nullopt);
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                            -std::numeric_limits<float>::signaling_NaN()}) {
      for (const size_t i : {size_t{0}, length / 3, length / 2, length - 1}) {
        const float good = x[i];
        x[i] = bad;
        ASSERT_FALSE(AllFinite(x)) << "length " << length << " place " << i;
        ASSERT_EQ(FirstNonFinite(x), i) << "length " << length;
        x[i] = good;
      }
    }
  }
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0

// Every kernel of the GPU against the one of the processor, compared bit for bit, on ordinary
// numbers and on any bits at all: subnormal, infinite, NaN.

#include "common/optimizer/gpu_kernels.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/random.h"
#include "common/optimizer/gpu_memory.h"
#include "common/optimizer/kernels.h"
#include "common/tensor/kernels.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr GradientScalars kGradient = {.gradient_scale = 1.0f / 7, .weight_decay = 0.013f};

// Lengths around those of a warp and of a block of threads, and far beyond.
std::vector<size_t> Lengths(Random& random) {
  std::vector<size_t> lengths = {0, 1, 2, 31, 32, 33, 255, 256, 257, 1 << 20};
  for (int i = 0; i < 20; ++i) lengths.push_back(random.Below(100'000));
  return lengths;
}

using Fill = std::function<float(Random& random)>;

float OrdinaryNumber(Random& random) { return static_cast<float>(random.Uniform()) * 4 - 1; }

float AnyBits(Random& random) {
  return std::bit_cast<float>(static_cast<uint32_t>(random.Next() >> 32));
}

std::vector<float> RandomFloats(Random& random, const Fill& fill, size_t count) {
  std::vector<float> result(count);
  for (float& x : result) x = fill(random);
  return result;
}

bool SameBits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

void ExpectSameBits(std::span<const float> actual, std::span<const float> expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    ASSERT_TRUE(SameBits(actual[i], expected[i]))
        << "element " << i << ": " << actual[i] << " instead of " << expected[i];
  }
}

gpu::Floats OnGpu(const std::vector<float>& values) {
  absl::StatusOr<gpu::Floats> floats = gpu::Floats::CopyOf(values);
  EXPECT_TRUE(floats.ok()) << floats.status();
  return *std::move(floats);
}

std::vector<float> FromGpu(const gpu::Floats& floats) {
  absl::StatusOr<std::vector<float>> values = floats.CopyBack();
  EXPECT_TRUE(values.ok()) << values.status();
  return *std::move(values);
}

using Kernel =
    std::function<void(std::span<const float> sum, std::span<const float> in, std::span<float> out,
                       std::span<float> slot0, std::span<float> slot1)>;

class GpuKernelsTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!gpu::IsPresent()) {
      GTEST_SKIP() << "this machine has no GPU with a driver for this program; run the test where "
                      "nvidia-smi lists one";
    }
  }

  static void ExpectAgreement(const Kernel& on_cpu, const Kernel& on_gpu) {
    for (const Fill& fill : {Fill(OrdinaryNumber), Fill(AnyBits)}) {
      Random random(42);
      for (const size_t length : Lengths(random)) {
        SCOPED_TRACE(length);
        Compare(random, fill, length, on_cpu, on_gpu);
        if (HasFatalFailure()) return;
      }
    }
  }

 private:
  static void Compare(Random& random, const Fill& fill, size_t length, const Kernel& on_cpu,
                      const Kernel& on_gpu) {
    const size_t start = random.Below(16);  // so that no alignment can be relied on
    const size_t total = start + length;
    const std::vector<float> sum = RandomFloats(random, fill, total);
    const std::vector<float> values = RandomFloats(random, fill, total);
    const std::vector<float> slot0 = RandomFloats(random, fill, total);
    const std::vector<float> slot1 = RandomFloats(random, fill, total);
    const auto part = [start](std::span<float> x) { return x.subspan(start); };
    const auto input = [start](std::span<const float> x) { return x.subspan(start); };

    std::vector<float> expected = values, expected0 = slot0, expected1 = slot1;
    on_cpu(input(sum), input(expected), part(expected), part(expected0), part(expected1));

    for (const bool in_place : {true, false}) {
      SCOPED_TRACE(in_place ? "in place" : "out of place");
      gpu::Floats gpu_sum = OnGpu(sum), gpu_in = OnGpu(values), gpu_other = OnGpu(values);
      gpu::Floats gpu0 = OnGpu(slot0), gpu1 = OnGpu(slot1);
      gpu::Floats& gpu_out = in_place ? gpu_in : gpu_other;
      on_gpu(input(gpu_sum.span()), input(gpu_in.span()), part(gpu_out.span()), part(gpu0.span()),
             part(gpu1.span()));
      ExpectSameBits(FromGpu(gpu_out), expected);
      ExpectSameBits(FromGpu(gpu0), expected0);
      ExpectSameBits(FromGpu(gpu1), expected1);
      if (!in_place) ExpectSameBits(FromGpu(gpu_in), values);
    }
  }
};

TEST_F(GpuKernelsTest, Sgd) {
  const SgdScalars s = {.gradient = kGradient, .learning_rate = 0.03f};
  ExpectAgreement(
      [&](auto sum, auto in, auto out, auto, auto) { UpdateSgd(s, sum, in, out); },
      [&](auto sum, auto in, auto out, auto, auto) { gpu::UpdateSgd(s, sum, in, out); });
}

TEST_F(GpuKernelsTest, Momentum) {
  const MomentumScalars s = {.gradient = kGradient, .learning_rate = 0.03f, .momentum = 0.9f};
  ExpectAgreement(
      [&](auto sum, auto in, auto out, auto slot, auto) { UpdateMomentum(s, sum, in, out, slot); },
      [&](auto sum, auto in, auto out, auto slot, auto) {
        gpu::UpdateMomentum(s, sum, in, out, slot);
      });
}

TEST_F(GpuKernelsTest, Nesterov) {
  const MomentumScalars s = {.gradient = kGradient, .learning_rate = 0.03f, .momentum = 0.9f};
  ExpectAgreement(
      [&](auto sum, auto in, auto out, auto slot, auto) { UpdateNesterov(s, sum, in, out, slot); },
      [&](auto sum, auto in, auto out, auto slot, auto) {
        gpu::UpdateNesterov(s, sum, in, out, slot);
      });
}

TEST_F(GpuKernelsTest, Adagrad) {
  const AdagradScalars s = {.gradient = kGradient, .learning_rate = 0.03f, .epsilon = 1e-8f};
  ExpectAgreement(
      [&](auto sum, auto in, auto out, auto slot, auto) { UpdateAdagrad(s, sum, in, out, slot); },
      [&](auto sum, auto in, auto out, auto slot, auto) {
        gpu::UpdateAdagrad(s, sum, in, out, slot);
      });
}

TEST_F(GpuKernelsTest, Adam) {
  const AdamScalars s = {.gradient = kGradient,
                         .rate = 0.03f,
                         .root_correction = 1.7f,
                         .epsilon = 1e-8f,
                         .keep = 0.999f,
                         .beta1 = 0.9f,
                         .one_minus_beta1 = 0.1f,
                         .beta2 = 0.999f,
                         .one_minus_beta2 = 0.001f};
  ExpectAgreement([&](auto sum, auto in, auto out, auto slot0,
                      auto slot1) { UpdateAdam(s, sum, in, out, slot0, slot1); },
                  [&](auto sum, auto in, auto out, auto slot0, auto slot1) {
                    gpu::UpdateAdam(s, sum, in, out, slot0, slot1);
                  });
}

TEST_F(GpuKernelsTest, AddIntoAndScaleInTheOrderAsked) {
  // The slots are used as sums here: the second kernel must see the results of the first.
  ExpectAgreement(
      [](auto sum, auto, auto, auto slot0, auto slot1) {
        AddInto(slot0, sum);
        Scale(slot0, 0.37f);
        AddInto(slot1, slot0);
      },
      [](auto sum, auto, auto, auto slot0, auto slot1) {
        gpu::AddInto(slot0, sum);
        gpu::Scale(slot0, 0.37f);
        gpu::AddInto(slot1, slot0);
      });
}

// Infinite, NaN and negative values, scaled by 0, all become +0. A factor of 1 changes no bit.
TEST_F(GpuKernelsTest, ScalesByZeroAndOneLikeTheProcessor) {
  for (const float factor : {0.0f, -0.0f, 1.0f}) {
    SCOPED_TRACE(factor);
    ExpectAgreement([&](auto, auto, auto, auto slot0, auto) { Scale(slot0, factor); },
                    [&](auto, auto, auto, auto slot0, auto) { gpu::Scale(slot0, factor); });
  }
}

TEST_F(GpuKernelsTest, AllFiniteFindsEachKindAtEachPlace) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto all_finite = [](const std::vector<float>& values) {
    gpu::Floats x = OnGpu(values), answer = OnGpu({7});
    gpu::AllFinite(x.span(), answer.span().first<1>());
    return FromGpu(answer)[0];
  };
  EXPECT_EQ(all_finite({}), 1);
  for (const size_t length : {size_t{1}, size_t{33}, size_t{257}, size_t{70'001}}) {
    std::vector<float> x(length, std::numeric_limits<float>::max());
    ASSERT_EQ(all_finite(x), 1);
    for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN(),
                            -std::numeric_limits<float>::signaling_NaN()}) {
      for (const size_t i : {size_t{0}, length / 2, length - 1}) {
        const float good = x[i];
        x[i] = bad;
        ASSERT_EQ(all_finite(x), 0) << "length " << length << " place " << i;
        x[i] = good;
      }
    }
  }
}

TEST_F(GpuKernelsTest, MoreMemoryThanThereIsIsRefusedAndForgotten) {
  const float one = 1;
  const std::span<const float> huge(&one, size_t{1} << 45);
  EXPECT_EQ(gpu::Floats::CopyOf(huge).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(gpu::Wait().ok());
}

}  // namespace
}  // namespace covey

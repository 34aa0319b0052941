// SPDX-License-Identifier: Apache-2.0

// Every kernel of the GPU against the one of the processor, compared bit for bit, on ordinary
// numbers and on any bits at all: subnormal, infinite, NaN.

#include "common/gpu/kernels.h"

#include <cstddef>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "common/base/random.h"
#include "common/gpu/memory.h"
#include "common/gpu/testing/gpu_test.h"
#include "common/optimizer/kernels.h"
#include "common/tensor/kernels.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr GradientScalars kGradient = {.gradient_scale = 1.0f / 7, .weight_decay = 0.013f};

using Kernel = std::function<void(std::span<const float> sum, std::span<const float> in,
                                  std::span<float> out, SlotSpans slot0, SlotSpans slot1)>;

class GpuKernelsTest : public GpuTest {
 protected:
  static void ExpectAgreement(const Kernel& on_cpu, const Kernel& on_gpu) {
    for (const Fill& fill : {Fill(OrdinaryNumber), Fill(AnyBits)}) {
      Random random(42);
      for (const size_t length : Lengths(random)) {
        SCOPED_TRACE(length);
        const size_t any = random.Below(16);
        // All arrays at an aligned place, all at another one, the gradient at another one alone.
        for (const Start& start : {Start{8, 8}, Start{any, any}, Start{4, 5 + random.Below(3)}}) {
          Compare(random, fill, length, start, on_cpu, on_gpu);
          if (HasFatalFailure()) return;
        }
      }
    }
  }

 private:
  // The first element of the values and slots, and that of the gradient.
  struct Start {
    size_t values;
    size_t gradient;
  };

  static void Compare(Random& random, const Fill& fill, size_t length, const Start& start,
                      const Kernel& on_cpu, const Kernel& on_gpu) {
    const size_t total = start.values + length;
    const std::vector<float> sum = RandomFloats(random, fill, start.gradient + length);
    const std::vector<float> values = RandomFloats(random, fill, total);
    const std::vector<float> slot0 = RandomFloats(random, fill, total);
    const std::vector<float> slot1 = RandomFloats(random, fill, total);
    const std::vector<float> filler = RandomFloats(random, fill, total);
    const auto part = [&start](std::span<float> x) { return x.subspan(start.values); };
    const auto slot = [&part](std::span<float> in, std::span<float> out) {
      return SlotSpans{.in = part(in), .out = part(out)};
    };
    const auto gradient = [&start](std::span<const float> x) { return x.subspan(start.gradient); };

    for (const bool in_place : {true, false}) {
      SCOPED_TRACE(in_place ? "in place" : "out of place");
      std::vector<float> in = values, in0 = slot0, in1 = slot1;
      std::vector<float> other = filler, other0 = filler, other1 = filler;
      std::vector<float>& out = in_place ? in : other;
      std::vector<float>& out0 = in_place ? in0 : other0;
      std::vector<float>& out1 = in_place ? in1 : other1;
      on_cpu(gradient(sum), part(in), part(out), slot(in0, out0), slot(in1, out1));

      gpu::Floats gpu_sum = OnGpu(sum), gpu_in = OnGpu(values), gpu_other = OnGpu(filler);
      gpu::Floats gpu_in0 = OnGpu(slot0), gpu_other0 = OnGpu(filler);
      gpu::Floats gpu_in1 = OnGpu(slot1), gpu_other1 = OnGpu(filler);
      gpu::Floats& gpu_out = in_place ? gpu_in : gpu_other;
      gpu::Floats& gpu_out0 = in_place ? gpu_in0 : gpu_other0;
      gpu::Floats& gpu_out1 = in_place ? gpu_in1 : gpu_other1;
      on_gpu(gradient(gpu_sum.span()), part(gpu_in.span()), part(gpu_out.span()),
             slot(gpu_in0.span(), gpu_out0.span()), slot(gpu_in1.span(), gpu_out1.span()));
      ExpectSameBits(FromGpu(gpu_out), out);
      ExpectSameBits(FromGpu(gpu_out0), out0);
      ExpectSameBits(FromGpu(gpu_out1), out1);
      if (in_place) continue;
      ExpectSameBits(FromGpu(gpu_in), values);
      ExpectSameBits(FromGpu(gpu_in0), slot0);
      ExpectSameBits(FromGpu(gpu_in1), slot1);
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

TEST_F(GpuKernelsTest, DelayedNesterov) {
  const DelayedNesterovScalars s = {
      .gradient = kGradient, .learning_rate = 0.03f, .momentum = 0.9f, .share = 1.0f / 3};
  ExpectAgreement(
      [&](auto sum, auto in, auto out, auto velocity, auto held) {
        HoldDelayedNesterov(s, sum, in, out, velocity, held);
        ReleaseDelayedNesterov(s, sum, out, out, InPlace(velocity.out), InPlace(held.out));
      },
      [&](auto sum, auto in, auto out, auto velocity, auto held) {
        gpu::HoldDelayedNesterov(s, sum, in, out, velocity, held);
        gpu::ReleaseDelayedNesterov(s, sum, out, out, InPlace(velocity.out), InPlace(held.out));
      });
}

TEST_F(GpuKernelsTest, AddIntoAndScaleInTheOrderAsked) {
  // The slots are used as sums here: the second kernel must see the results of the first.
  ExpectAgreement(
      [](auto sum, auto, auto, auto slot0, auto slot1) {
        AddInto(slot0.out, sum);
        Scale(slot0.out, 0.37f);
        AddInto(slot1.out, slot0.out);
      },
      [](auto sum, auto, auto, auto slot0, auto slot1) {
        gpu::AddInto(slot0.out, sum);
        gpu::Scale(slot0.out, 0.37f);
        gpu::AddInto(slot1.out, slot0.out);
      });
}

// Infinite, NaN and negative values, scaled by 0, all become +0. A factor of 1 changes no bit.
TEST_F(GpuKernelsTest, ScalesByZeroAndOneLikeTheProcessor) {
  for (const float factor : {0.0f, -0.0f, 1.0f}) {
    SCOPED_TRACE(factor);
    ExpectAgreement([&](auto, auto, auto, auto slot0, auto) { Scale(slot0.out, factor); },
                    [&](auto, auto, auto, auto slot0, auto) { gpu::Scale(slot0.out, factor); });
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

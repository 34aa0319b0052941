// SPDX-License-Identifier: Apache-2.0

// The formulas of kernels.cc. The flags of cuda.bzl keep a*b+c two operations; nvcc rounds division
// and square root correctly and keeps subnormal numbers unless told otherwise.

#include "common/gpu/kernels.h"

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/gpu/elementwise.h"

namespace covey::gpu {
namespace {

Read<float> In(std::span<const float> x) { return {x.data()}; }
Write<float> Out(std::span<float> x) { return {x.data()}; }
Modify<float> State(std::span<float> x) { return {x.data()}; }

__device__ float Gradient(const GradientScalars& scalars, float gradient_sum, float value) {
  return gradient_sum * scalars.gradient_scale + scalars.weight_decay * value;
}

}  // namespace

void UpdateSgd(const SgdScalars& scalars, std::span<const float> gradient_sum,
               std::span<const float> values_in, std::span<float> values_out) {
  const auto update = [s = scalars] __device__(float sum, float in, float& out) {
    const float g = Gradient(s.gradient, sum, in);
    out = in - s.learning_rate * g;
  };
  ForEach(values_out.size(), update, In(gradient_sum), In(values_in), Out(values_out));
}

void UpdateMomentum(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    SlotSpans velocity) {
  const auto update = [s = scalars] __device__(float sum, float in, float& out, float v,
                                               float& v_out) {
    const float g = Gradient(s.gradient, sum, in);
    const float next = s.momentum * v + g;
    v_out = next;
    out = in - s.learning_rate * next;
  };
  ForEach(values_out.size(), update, In(gradient_sum), In(values_in), Out(values_out),
          In(velocity.in), Out(velocity.out));
}

void UpdateNesterov(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    SlotSpans velocity) {
  const auto update = [s = scalars] __device__(float sum, float in, float& out, float v,
                                               float& v_out) {
    const float g = Gradient(s.gradient, sum, in);
    const float next = s.momentum * v + g;
    v_out = next;
    out = in - s.learning_rate * (g + s.momentum * next);
  };
  ForEach(values_out.size(), update, In(gradient_sum), In(values_in), Out(values_out),
          In(velocity.in), Out(velocity.out));
}

void UpdateAdagrad(const AdagradScalars& scalars, std::span<const float> gradient_sum,
                   std::span<const float> values_in, std::span<float> values_out,
                   SlotSpans squares) {
  const auto update = [s = scalars] __device__(float sum, float in, float& out, float q,
                                               float& q_out) {
    const float g = Gradient(s.gradient, sum, in);
    const float next = q + g * g;
    q_out = next;
    out = in - s.learning_rate * g / (sqrtf(next) + s.epsilon);
  };
  ForEach(values_out.size(), update, In(gradient_sum), In(values_in), Out(values_out),
          In(squares.in), Out(squares.out));
}

void UpdateAdam(const AdamScalars& scalars, std::span<const float> gradient_sum,
                std::span<const float> values_in, std::span<float> values_out, SlotSpans mean,
                SlotSpans square) {
  const auto update = [s = scalars] __device__(float sum, float in, float& out, float m,
                                               float& m_out, float q, float& q_out) {
    const float g = Gradient(s.gradient, sum, in);
    const float next_mean = s.beta1 * m + s.one_minus_beta1 * g;
    const float next_square = s.beta2 * q + s.one_minus_beta2 * g * g;
    m_out = next_mean;
    q_out = next_square;
    const float root = sqrtf(next_square) * s.root_correction;
    out = s.keep * in - s.rate * next_mean / (root + s.epsilon);
  };
  ForEach(values_out.size(), update, In(gradient_sum), In(values_in), Out(values_out), In(mean.in),
          Out(mean.out), In(square.in), Out(square.out));
}

void HoldDelayedNesterov(const DelayedNesterovScalars& scalars, std::span<const float> gradient_sum,
                         std::span<const float> values_in, std::span<float> values_out,
                         SlotSpans velocity, SlotSpans held) {
  if (velocity.out.data() != velocity.in.data()) {
    ForEach(
        velocity.out.size(), [] __device__(float in, float& out) { out = in; }, In(velocity.in),
        Out(velocity.out));
  }
  const auto update = [s = scalars] __device__(float sum, float in, float& out, float h,
                                               float& h_out) {
    const float g = Gradient(s.gradient, sum, in);
    h_out = h + g;
    out = in - s.learning_rate * (g * s.share);
  };
  ForEach(values_out.size(), update, In(gradient_sum), In(values_in), Out(values_out), In(held.in),
          Out(held.out));
}

void ReleaseDelayedNesterov(const DelayedNesterovScalars& scalars,
                            std::span<const float> gradient_sum, std::span<const float> values_in,
                            std::span<float> values_out, SlotSpans velocity, SlotSpans held) {
  const auto update = [s = scalars] __device__(float sum, float in, float& out, float v,
                                               float& v_out, float h, float& h_out) {
    const float g = Gradient(s.gradient, sum, in);
    const float next = s.momentum * v + (h + g) * s.share;
    v_out = next;
    h_out = 0;
    out = in - s.learning_rate * (g * s.share + s.momentum * next);
  };
  ForEach(values_out.size(), update, In(gradient_sum), In(values_in), Out(values_out),
          In(velocity.in), Out(velocity.out), In(held.in), Out(held.out));
}

void AddInto(std::span<float> sum, std::span<const float> x) {
  const auto add = [] __device__(float& total, float addend) { total += addend; };
  ForEach(sum.size(), add, State(sum), In(x));
}

void Scale(std::span<float> x, float factor) {
  if (factor == 1) return;  // The CPU leaves each bit as it is; 1 * NaN would not.
  if (factor == 0) {        // Zeros, even for elements that are not finite, and no negative zeros.
    ForEach(
        x.size(), [] __device__(float& value) { value = 0; }, Out(x));
    return;
  }
  ForEach(
      x.size(), [=] __device__(float& value) { value *= factor; }, State(x));
}

void AllFinite(std::span<const float> x, std::span<float, 1> answer) {
  ForEach(
      1, [] __device__(float& all_finite) { all_finite = 1; }, Out(answer));
  float* const all_finite = answer.data();
  const auto look = [=] __device__(float value) {
    if (!isfinite(value)) *all_finite = 0;  // every thread writes the same value
  };
  ForEach(x.size(), look, In(x));
}

}  // namespace covey::gpu

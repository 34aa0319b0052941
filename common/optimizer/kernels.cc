// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/kernels.h"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

#include "common/tensor/kernel_macros.h"

namespace covey {
namespace {

inline float Gradient(const GradientScalars& scalars, float gradient_sum, float value) {
  return gradient_sum * scalars.gradient_scale + scalars.weight_decay * value;
}

}  // namespace

COVEY_KERNEL void UpdateSgd(const SgdScalars& scalars, std::span<const float> gradient_sum,
                            std::span<const float> values_in, std::span<float> values_out) {
  const SgdScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  const size_t count = values_out.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    out[i] = in[i] - s.learning_rate * g;
  }
}

COVEY_KERNEL void UpdateMomentum(const MomentumScalars& scalars,
                                 std::span<const float> gradient_sum,
                                 std::span<const float> values_in, std::span<float> values_out,
                                 std::span<float> velocity) {
  const MomentumScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const v = velocity.data();
  const size_t count = values_out.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = s.momentum * v[i] + g;
    v[i] = next;
    out[i] = in[i] - s.learning_rate * next;
  }
}

COVEY_KERNEL void UpdateNesterov(const MomentumScalars& scalars,
                                 std::span<const float> gradient_sum,
                                 std::span<const float> values_in, std::span<float> values_out,
                                 std::span<float> velocity) {
  const MomentumScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const v = velocity.data();
  const size_t count = values_out.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = s.momentum * v[i] + g;
    v[i] = next;
    out[i] = in[i] - s.learning_rate * (g + s.momentum * next);
  }
}

COVEY_KERNEL void UpdateAdagrad(const AdagradScalars& scalars, std::span<const float> gradient_sum,
                                std::span<const float> values_in, std::span<float> values_out,
                                std::span<float> squares) {
  const AdagradScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const q = squares.data();
  const size_t count = values_out.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = q[i] + g * g;
    q[i] = next;
    out[i] = in[i] - s.learning_rate * g / (std::sqrt(next) + s.epsilon);
  }
}

COVEY_KERNEL void UpdateAdam(const AdamScalars& scalars, std::span<const float> gradient_sum,
                             std::span<const float> values_in, std::span<float> values_out,
                             std::span<float> mean, std::span<float> square) {
  const AdamScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const m = mean.data();
  float* const q = square.data();
  const size_t count = values_out.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next_mean = s.beta1 * m[i] + s.one_minus_beta1 * g;
    const float next_square = s.beta2 * q[i] + s.one_minus_beta2 * g * g;
    m[i] = next_mean;
    q[i] = next_square;
    const float root = std::sqrt(next_square) * s.root_correction;
    out[i] = s.keep * in[i] - s.rate * next_mean / (root + s.epsilon);
  }
}

COVEY_KERNEL void HoldDelayedNesterov(const DelayedNesterovScalars& scalars,
                                      std::span<const float> gradient_sum,
                                      std::span<const float> values_in, std::span<float> values_out,
                                      std::span<float> held) {
  const DelayedNesterovScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const h = held.data();
  const size_t count = values_out.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    h[i] += g;
    out[i] = in[i] - s.learning_rate * (g * s.share);
  }
}

COVEY_KERNEL void ReleaseDelayedNesterov(const DelayedNesterovScalars& scalars,
                                         std::span<const float> gradient_sum,
                                         std::span<const float> values_in,
                                         std::span<float> values_out, std::span<float> velocity,
                                         std::span<float> held) {
  const DelayedNesterovScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const v = velocity.data();
  float* const h = held.data();
  const size_t count = values_out.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = s.momentum * v[i] + (h[i] + g) * s.share;
    v[i] = next;
    h[i] = 0;
    out[i] = in[i] - s.learning_rate * (g * s.share + s.momentum * next);
  }
}

COVEY_KERNEL void CompensateDelay(float strength, std::span<const float> gradient_sum,
                                  std::span<const float> values, std::span<const float> previous,
                                  std::span<float> compensated) {
  constexpr uint32_t kExponent = 0x7f800000;
  const float* const sum = gradient_sum.data();
  const float* const now = values.data();
  const float* const then = previous.data();
  float* const out = compensated.data();
  const size_t count = compensated.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float moved = sum[i] + strength * sum[i] * sum[i] * (now[i] - then[i]);
    const bool is_finite = (std::bit_cast<uint32_t>(moved) & kExponent) != kExponent;
    out[i] = is_finite ? moved : sum[i];
  }
}

COVEY_KERNEL bool AllFinite(std::span<const float> x) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones: NaN or infinity
  const float* const values = x.data();
  const size_t count = x.size();
  uint32_t found = 0;
  for (size_t i = 0; i < count; ++i) {
    found |= (std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent;
  }
  return found == 0;
}

}  // namespace covey

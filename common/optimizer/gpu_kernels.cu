// SPDX-License-Identifier: Apache-2.0

// The formulas of kernels.cc, one thread of the GPU per element. The flags of cuda.bzl keep a*b+c
// two operations; nvcc rounds division and square root correctly and keeps subnormal numbers unless
// told otherwise.

#include <cuda_runtime.h>

#include <cstddef>
#include <span>

#include "common/optimizer/gpu_kernels.h"

namespace covey::gpu {
namespace {

constexpr unsigned kThreadsPerBlock = 256;

template <typename Update>
__global__ void RunForEach(size_t count, Update update) {
  const size_t i = size_t{blockIdx.x} * kThreadsPerBlock + threadIdx.x;
  if (i < count) update(i);
}

// Asks the GPU to call update(i) for each i below `count`.
template <typename Update>
void ForEach(size_t count, Update update) {
  if (count == 0) return;  // CUDA treats an empty grid as an error
  const size_t blocks = (count + kThreadsPerBlock - 1) / kThreadsPerBlock;
  RunForEach<<<static_cast<unsigned>(blocks), kThreadsPerBlock, 0, cudaStreamPerThread>>>(count,
                                                                                          update);
}

__device__ float Gradient(const GradientScalars& scalars, float gradient_sum, float value) {
  return gradient_sum * scalars.gradient_scale + scalars.weight_decay * value;
}

}  // namespace

void UpdateSgd(const SgdScalars& scalars, std::span<const float> gradient_sum,
               std::span<const float> values_in, std::span<float> values_out) {
  const SgdScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  ForEach(values_out.size(), [=] __device__(size_t i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    out[i] = in[i] - s.learning_rate * g;
  });
}

void UpdateMomentum(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    std::span<float> velocity) {
  const MomentumScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const v = velocity.data();
  ForEach(values_out.size(), [=] __device__(size_t i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = s.momentum * v[i] + g;
    v[i] = next;
    out[i] = in[i] - s.learning_rate * next;
  });
}

void UpdateNesterov(const MomentumScalars& scalars, std::span<const float> gradient_sum,
                    std::span<const float> values_in, std::span<float> values_out,
                    std::span<float> velocity) {
  const MomentumScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const v = velocity.data();
  ForEach(values_out.size(), [=] __device__(size_t i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = s.momentum * v[i] + g;
    v[i] = next;
    out[i] = in[i] - s.learning_rate * (g + s.momentum * next);
  });
}

void UpdateAdagrad(const AdagradScalars& scalars, std::span<const float> gradient_sum,
                   std::span<const float> values_in, std::span<float> values_out,
                   std::span<float> squares) {
  const AdagradScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const q = squares.data();
  ForEach(values_out.size(), [=] __device__(size_t i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next = q[i] + g * g;
    q[i] = next;
    out[i] = in[i] - s.learning_rate * g / (sqrtf(next) + s.epsilon);
  });
}

void UpdateAdam(const AdamScalars& scalars, std::span<const float> gradient_sum,
                std::span<const float> values_in, std::span<float> values_out,
                std::span<float> mean, std::span<float> square) {
  const AdamScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const m = mean.data();
  float* const q = square.data();
  ForEach(values_out.size(), [=] __device__(size_t i) {
    const float g = Gradient(s.gradient, sum[i], in[i]);
    const float next_mean = s.beta1 * m[i] + s.one_minus_beta1 * g;
    const float next_square = s.beta2 * q[i] + s.one_minus_beta2 * g * g;
    m[i] = next_mean;
    q[i] = next_square;
    const float root = sqrtf(next_square) * s.root_correction;
    out[i] = s.keep * in[i] - s.rate * next_mean / (root + s.epsilon);
  });
}

void AddInto(std::span<float> sum, std::span<const float> x) {
  float* const total = sum.data();
  const float* const addend = x.data();
  ForEach(sum.size(), [=] __device__(size_t i) { total[i] += addend[i]; });
}

void Scale(std::span<float> x, float factor) {
  if (factor == 1) return;  // The CPU leaves each bit as it is; 1 * NaN would not.
  float* const values = x.data();
  if (factor == 0) {  // Zeros, even for elements that are not finite, and no negative zeros.
    ForEach(x.size(), [=] __device__(size_t i) { values[i] = 0; });
    return;
  }
  ForEach(x.size(), [=] __device__(size_t i) { values[i] *= factor; });
}

void AllFinite(std::span<const float> x, std::span<float, 1> answer) {
  const float* const values = x.data();
  float* const all_finite = answer.data();
  ForEach(1, [=] __device__(size_t) { *all_finite = 1; });
  ForEach(x.size(), [=] __device__(size_t i) {
    if (!isfinite(values[i])) *all_finite = 0;  // every thread writes the same value
  });
}

}  // namespace covey::gpu

// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/trust_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "common/tensor/kernel_macros.h"

namespace covey {
namespace {

// Sums of squares in a fixed order, see the header.
class SquareSum {
 public:
  void Add(size_t lane, float x) { sums_[lane] += static_cast<double>(x) * static_cast<double>(x); }
  double Norm() const {
    double total = 0;
    for (const double sum : sums_) total += sum;
    return std::sqrt(total);
  }

 private:
  double sums_[kTrustLanes] = {};
};

inline float LambStep(const LambScalars& s, float mean, float square, float value) {
  return mean * s.mean_correction / (std::sqrt(square) * s.root_correction + s.epsilon) +
         s.weight_decay * value;
}

// LAMB's first pass: updates the running means, and leaves the values unchanged. Returns the ratio.
COVEY_KERNEL double LambRatio(const LambScalars& scalars, std::span<const float> gradient_sum,
                              std::span<const float> values, std::span<float> mean,
                              std::span<float> square) {
  const LambScalars s = scalars;
  const float* const sum = gradient_sum.data();
  const float* const value = values.data();
  float* const m = mean.data();
  float* const q = square.data();
  const size_t count = values.size();
  SquareSum value_squares, step_squares;
  for (size_t first = 0; first < count; first += kTrustLanes) {
    const size_t lanes = std::min(kTrustLanes, count - first);
    COVEY_ELEMENTWISE
    for (size_t lane = 0; lane < lanes; ++lane) {
      const size_t i = first + lane;
      const float g = sum[i] * s.gradient_scale;
      const float next_mean = s.beta1 * m[i] + s.one_minus_beta1 * g;
      const float next_square = s.beta2 * q[i] + s.one_minus_beta2 * g * g;
      m[i] = next_mean;
      q[i] = next_square;
      value_squares.Add(lane, value[i]);
      step_squares.Add(lane, LambStep(s, next_mean, next_square, value[i]));
    }
  }
  const double norm = value_squares.Norm();
  const double step_norm = step_squares.Norm();
  return norm == 0 || step_norm == 0 ? 1 : norm / step_norm;
}

}  // namespace

COVEY_KERNEL double LarsRatio(const LarsScalars& scalars, std::span<const float> gradient_sum,
                              std::span<const float> values) {
  const float scale = scalars.gradient_scale;
  const float* const sum = gradient_sum.data();
  const float* const value = values.data();
  const size_t count = values.size();
  SquareSum gradient_squares, value_squares;
  for (size_t first = 0; first < count; first += kTrustLanes) {
    const size_t lanes = std::min(kTrustLanes, count - first);
    for (size_t lane = 0; lane < lanes; ++lane) {
      gradient_squares.Add(lane, sum[first + lane] * scale);
      value_squares.Add(lane, value[first + lane]);
    }
  }
  const double norm = value_squares.Norm();
  const double divisor = gradient_squares.Norm() + scalars.weight_decay * norm;
  return norm == 0 || divisor == 0 ? 1 : scalars.trust * norm / divisor;
}

COVEY_KERNEL void UpdateLars(const LarsScalars& scalars, std::span<const float> gradient_sum,
                             std::span<const float> values_in, std::span<float> values_out,
                             std::span<float> velocity) {
  const LarsScalars s = scalars;
  const float ratio = static_cast<float>(LarsRatio(s, gradient_sum, values_in));
  const float* const sum = gradient_sum.data();
  const float* const in = values_in.data();
  float* const out = values_out.data();
  float* const v = velocity.data();
  const size_t count = values_out.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] * s.gradient_scale + s.weight_decay * in[i];
    const float next = s.momentum * v[i] + ratio * g;
    v[i] = next;
    out[i] = in[i] - s.learning_rate * next;
  }
}

COVEY_KERNEL void UpdateLamb(const LambScalars& scalars, std::span<const float> gradient_sum,
                             std::span<const float> values_in, std::span<float> values_out,
                             std::span<float> mean, std::span<float> square) {
  const LambScalars s = scalars;
  const double ratio = LambRatio(s, gradient_sum, values_in, mean, square);
  const float rate = static_cast<float>(s.learning_rate * ratio);
  const float* const in = values_in.data();
  float* const out = values_out.data();
  const float* const m = mean.data();
  const float* const q = square.data();
  const size_t count = values_out.size();
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    out[i] = in[i] - rate * LambStep(s, m[i], q[i], in[i]);
  }
}

}  // namespace covey

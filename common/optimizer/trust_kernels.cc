// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/trust_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "common/optimizer/elementwise.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/optimizer/trust_kernels.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

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

double RatioOfLars(const LarsScalars s, const float* sum, const float* value, size_t count) {
  SquareSum gradient_squares, value_squares;
  for (size_t first = 0; first < count; first += kTrustLanes) {
    const size_t lanes = std::min(kTrustLanes, count - first);
    for (size_t lane = 0; lane < lanes; ++lane) {
      gradient_squares.Add(lane, sum[first + lane] * s.gradient_scale);
      value_squares.Add(lane, value[first + lane]);
    }
  }
  const double norm = value_squares.Norm();
  const double divisor = gradient_squares.Norm() + s.weight_decay * norm;
  return norm == 0 || divisor == 0 ? 1 : s.trust * norm / divisor;
}

void Lars(const LarsScalars s, float ratio, const float* sum, const float* in, float* out,
          const float* v_in, float* v_out, size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    const float g = sum[i] * s.gradient_scale + s.weight_decay * in[i];
    const float next = s.momentum * v_in[i] + ratio * g;
    v_out[i] = next;
    out[i] = in[i] - s.learning_rate * next;
  }
}

inline float LambStep(const LambScalars& s, float mean, float square, float value) {
  return mean * s.mean_correction / (std::sqrt(square) * s.root_correction + s.epsilon) +
         s.weight_decay * value;
}

// LAMB's first pass: updates the running means, and leaves the values unchanged. Returns the ratio.
double RatioOfLamb(const LambScalars s, const float* sum, const float* value, const float* m_in,
                   float* m_out, const float* q_in, float* q_out, size_t count) {
  SquareSum value_squares, step_squares;
  for (size_t first = 0; first < count; first += kTrustLanes) {
    const size_t lanes = std::min(kTrustLanes, count - first);
    COVEY_ELEMENTWISE
    for (size_t lane = 0; lane < lanes; ++lane) {
      const size_t i = first + lane;
      const float g = sum[i] * s.gradient_scale;
      const float next_mean = s.beta1 * m_in[i] + s.one_minus_beta1 * g;
      const float next_square = s.beta2 * q_in[i] + s.one_minus_beta2 * g * g;
      m_out[i] = next_mean;
      q_out[i] = next_square;
      value_squares.Add(lane, value[i]);
      step_squares.Add(lane, LambStep(s, next_mean, next_square, value[i]));
    }
  }
  const double norm = value_squares.Norm();
  const double step_norm = step_squares.Norm();
  return norm == 0 || step_norm == 0 ? 1 : norm / step_norm;
}

// LAMB's second pass.
void Lamb(const LambScalars s, float rate, const float* in, float* out, const float* m,
          const float* q, size_t count) {
  COVEY_ELEMENTWISE
  for (size_t i = 0; i < count; ++i) {
    out[i] = in[i] - rate * LambStep(s, m[i], q[i], in[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(RatioOfLars);
HWY_EXPORT(Lars);
HWY_EXPORT(RatioOfLamb);
HWY_EXPORT(Lamb);

}  // namespace

double LarsRatio(const LarsScalars& scalars, std::span<const float> gradient_sum,
                 std::span<const float> values) {
  return HWY_DYNAMIC_DISPATCH(RatioOfLars)(scalars, gradient_sum.data(), values.data(),
                                           values.size());
}

void UpdateLars(const LarsScalars& scalars, std::span<const float> gradient_sum,
                std::span<const float> values_in, std::span<float> values_out, SlotSpans velocity) {
  const float ratio = static_cast<float>(LarsRatio(scalars, gradient_sum, values_in));
  HWY_DYNAMIC_DISPATCH(Lars)
  (scalars, ratio, gradient_sum.data(), values_in.data(), values_out.data(), velocity.in.data(),
   velocity.out.data(), values_out.size());
}

void UpdateLamb(const LambScalars& scalars, std::span<const float> gradient_sum,
                std::span<const float> values_in, std::span<float> values_out, SlotSpans mean,
                SlotSpans square) {
  const double ratio = HWY_DYNAMIC_DISPATCH(RatioOfLamb)(
      scalars, gradient_sum.data(), values_in.data(), mean.in.data(), mean.out.data(),
      square.in.data(), square.out.data(), values_in.size());
  const float rate = static_cast<float>(scalars.learning_rate * ratio);
  HWY_DYNAMIC_DISPATCH(Lamb)
  (scalars, rate, values_in.data(), values_out.data(), mean.out.data(), square.out.data(),
   values_out.size());
}

}  // namespace covey
#endif  // HWY_ONCE

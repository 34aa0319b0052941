// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>

#include "common/optimizer/kernels.h"

namespace covey {

// Updates whose rate follows the ratio of two norms, over all elements of the call: unlike those of
// kernels.h they are not element-wise, so slices give other bits, and other values, than the whole.
//
// Pure and thread-safe; aliasing, alignment and rounding as in kernels.h. A norm is a sum of
// squares in double, in kTrustLanes sums by index modulo kTrustLanes that are added in growing
// order at the end. So the bits depend on no vector width and no processor.
//
// Cost: two passes; in bytes moved per element, in place, 28 (LARS) and 40 (LAMB).
inline constexpr size_t kTrustLanes = 16;

// LARS (You et al. 2017, arXiv 1708.03888) with the learning rate outside the velocity:
//   gradient = gradient_sum * gradient_scale
//   ratio    = trust * norm(values) / (norm(gradient) + weight_decay * norm(values))
//   velocity = momentum * velocity + ratio * (gradient + weight_decay * value)
//   value   -= learning_rate * velocity
// ratio is 1 where norm(values) or the divisor is 0, so that values may leave 0.
struct LarsScalars {
  float gradient_scale = 1;
  float weight_decay = 0;
  float learning_rate = 0;
  float momentum = 0;
  double trust = 0.001;
};
// The ratio, before it is rounded to a float.
double LarsRatio(const LarsScalars& scalars, std::span<const float> gradient_sum,
                 std::span<const float> values);
void UpdateLars(const LarsScalars& scalars, std::span<const float> gradient_sum,
                std::span<const float> values_in, std::span<float> values_out, SlotSpans velocity);

// LAMB (You et al. 2020, arXiv 1904.00962) with the identity for its scaling function:
//   mean   = beta1 * mean + (1 - beta1) * gradient
//   square = beta2 * square + (1 - beta2) * gradient^2
//   r      = mean * mean_correction / (sqrt(square) * root_correction + epsilon)
//              + weight_decay * value
//   value -= learning_rate * norm(values) / norm(r) * r
// For update t: mean_correction = 1 / (1 - beta1^t), root_correction = 1 / sqrt(1 - beta2^t). The
// ratio is 1 where a norm is 0.
struct LambScalars {
  float gradient_scale = 1;
  float weight_decay = 0;
  float learning_rate = 0;
  float mean_correction = 1;
  float root_correction = 1;
  float epsilon = 0;
  float beta1 = 0;
  float one_minus_beta1 = 1;
  float beta2 = 0;
  float one_minus_beta2 = 1;
};
void UpdateLamb(const LambScalars& scalars, std::span<const float> gradient_sum,
                std::span<const float> values_in, std::span<float> values_out, SlotSpans mean,
                SlotSpans square);

}  // namespace covey

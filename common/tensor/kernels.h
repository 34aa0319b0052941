// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace covey {

// Arithmetic over spans of floats, each function one pass over memory. Used wherever gradients are
// weighted and summed.
//
// Pure and thread-safe; any alignment; spans of one call do not overlap. Deterministic: IEEE
// operations in an order that is stated, so that vector instructions change the speed and never the
// bits (except the payload of a NaN). Bound by memory: AddInto and Add move 12 bytes per element.
// kernels_bench.cc measures them.

// sum[i] += x[i]. Precondition: equal sizes.
void AddInto(std::span<float> sum, std::span<const float> x);

// sum[i] = a[i] + b[i], with the bits that AddInto(sum, b) gives when `sum` is a copy of `a`.
// Precondition: equal sizes.
void Add(std::span<const float> a, std::span<const float> b, std::span<float> sum);

// residual[i] = wanted[i] - sent[i], or 0 where that is not finite: what a wire format has lost.
// Precondition: equal sizes.
void KeepLoss(std::span<const float> wanted, std::span<const float> sent,
              std::span<float> residual);

// The sum of x[i]^2 in double: 8 sums by index modulo 8, which are added in growing order at the
// end.
double SumOfSquares(std::span<const float> x);

// x[i] *= factor. A factor of 0 gives zeros even for NaN and infinity, so that a member without
// samples adds nothing.
void Scale(std::span<float> x, float factor);

}  // namespace covey

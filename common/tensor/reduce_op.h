// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace covey {

// How the values of several members become one; numbers as in proto/tensor.proto. Every one gives
// the same bits in either order of its two operands. Integers wrap around.
//
//   kMin, kMax  of -0 and +0 the former is smaller; NaN if one of the two is
enum class ReduceOp : uint8_t { kSum = 0, kProduct = 1, kMin = 2, kMax = 3 };
inline constexpr ReduceOp kReduceOps[] = {ReduceOp::kSum, ReduceOp::kProduct, ReduceOp::kMin,
                                          ReduceOp::kMax};

}  // namespace covey

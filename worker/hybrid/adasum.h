// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/collective/part_range.h"

namespace covey::worker {

// Adasum of a group's gradients (hybrid_options.h, Combine). Every vector on the way is a linear
// combination of the members' gradients g_i, so their dot products say all:
//
//   result = c_1 g_1 + ... + c_N g_N,   c = AdasumCoefficients(the products g_i.g_j)
//
// Pure. Deterministic.

// Products of pairs (i, j) with i <= j, one after the other: (0, 0), (0, 1), ..., (1, 1), ...
constexpr size_t AdasumProducts(size_t members) { return members * (members + 1) / 2; }

// `products` of `members` gradients; of a part of a tensor, whose products add up. A vector that is
// zero, or is left over where terms cancel out, changes nothing about the other one of its pair.
// With products that are not finite, the result is not finite where a gradient is not.
// O(members^2) per level of the tree of pairs.
std::vector<double> AdasumCoefficients(std::span<const double> products, uint32_t members);

// Adds the products of the columns `tensor` of a matrix with one row per member. `products` as
// above.
void AddProducts(std::span<const float> rows, uint32_t members, PartRange tensor,
                 std::span<double> products);
// The sum of the columns `tensor` of the rows times `factors`, one per row.
void SumRows(std::span<const float> rows, std::span<const double> factors, PartRange tensor,
             std::span<float> sum);

}  // namespace covey::worker

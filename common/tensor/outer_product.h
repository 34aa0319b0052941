// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "common/tensor/wire_format.h"

namespace covey {

// Gradients of matrices in factors, two vectors for each training example: the gradient is the sum
// over `terms`, in their order, of left[term][row] * right[term][column]. In factors a gradient of
// K examples for an M x N matrix takes 4 K (M + N) bytes in place of 4 M N (Chilimbi et al.,
// Project Adam, 2014).
//
// Pure and thread-safe; any alignment of at least that of float; spans of one call do not overlap.

// Consecutive elements of a matrix, row by row: what a shard holds of a table. It may begin and end
// in the middle of a row.
struct MatrixRange {
  uint64_t first_element = 0;
  uint64_t elements = 0;  // at least 1
  uint64_t columns = 0;   // of the matrix, at least 1; 0 = there is no matrix

  uint64_t first_row() const { return first_element / columns; }
  // Those that it has a part of.
  uint64_t rows() const { return (first_element + elements - 1) / columns + 1 - first_row(); }
};

struct Factors {
  size_t terms = 0;
  // Of each term, an element for each row of the matrix from `first_row` on, and one for each
  // column; those of a term follow those of the term before.
  std::span<const float> left;
  std::span<const float> right;
  uint64_t first_row = 0;
};

// Bytes of the factors of a range: all terms of the part of `left` for its rows, then all of
// `right`. In formats with blocks each term of either begins a new block.
size_t FactorBytes(WireFormat format, const MatrixRange& range, size_t terms);
// Whether these are fewer than those of the elements: only then does a gradient travel in factors,
// so that its bytes, and the time to sum them, have a limit.
bool AreFactorsSmaller(WireFormat format, const MatrixRange& range, size_t terms);

// Precondition: `factors` has all rows of the range; `bytes` FactorBytes.
void EncodeFactors(WireFormat format, const MatrixRange& range, const Factors& factors,
                   std::span<uint8_t> bytes);
// Accepts any bytes. The factors are in `memory`, which has room for `terms` times the rows and
// columns of the range.
Factors DecodeFactors(WireFormat format, const MatrixRange& range, size_t terms,
                      std::span<const uint8_t> bytes, std::span<float> memory);
// The factors that were encoded as kFloat32, where they are.
Factors FactorsIn(const MatrixRange& range, size_t terms, std::span<const float> frame);

// The gradient's elements of the range. Each is a sum in float32 from +0 on, of products that are
// rounded, too: the same bits on every machine, and for every cut of a table into shards.
//
// Bound by arithmetic: a multiplication and an addition for each element and term, a load of
// `right` for each, and one of the sum for four terms. A core of 3 GHz with AVX2 does at most 24 G
// of them in a second, so 64 terms for a shard of 1 MiB take 0.7 ms at least.
// outer_product_bench.cc measures it.
void SumOuterProducts(const MatrixRange& range, const Factors& factors, std::span<float> elements);

}  // namespace covey

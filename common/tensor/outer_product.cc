// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/outer_product.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/base/check.h"
#include "common/tensor/codec.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/tensor/outer_product.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

// sum[i] = the sum over the terms of left[t * left_stride] * right[t * right_stride + i]. Four
// terms at a time need the sum loaded and stored once.
void SumTerms(const float* left, size_t left_stride, const float* right, size_t right_stride,
              size_t terms, float* __restrict sum, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = 0.0f;
  size_t t = 0;
  for (; t + 4 <= terms; t += 4) {
    const float a = left[t * left_stride];
    const float b = left[(t + 1) * left_stride];
    const float c = left[(t + 2) * left_stride];
    const float d = left[(t + 3) * left_stride];
    const float* const __restrict x = right + t * right_stride;
    const float* const __restrict y = x + right_stride;
    const float* const __restrict z = y + right_stride;
    const float* const __restrict w = z + right_stride;
    for (size_t i = 0; i < count; ++i) {
      sum[i] = (((sum[i] + a * x[i]) + b * y[i]) + c * z[i]) + d * w[i];
    }
  }
  for (; t < terms; ++t) {
    const float a = left[t * left_stride];
    const float* const __restrict x = right + t * right_stride;
    for (size_t i = 0; i < count; ++i) sum[i] = sum[i] + a * x[i];
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(SumTerms);

// Columns that are summed at a time: those of 64 terms stay in a core's cache from row to row.
constexpr uint64_t kColumnsAtATime = 512;

}  // namespace

size_t FactorBytes(WireFormat format, const MatrixRange& range, size_t terms) {
  return EncodedRowBytes(format, range.rows(), terms) +
         EncodedRowBytes(format, range.columns, terms);
}

bool AreFactorsSmaller(WireFormat format, const MatrixRange& range, size_t terms) {
  // Of so many terms no factors are smaller, and their bytes do not overflow.
  return terms < range.elements &&
         FactorBytes(format, range, terms) < EncodedBytes(format, range.elements);
}

void EncodeFactors(WireFormat format, const MatrixRange& range, const Factors& factors,
                   std::span<uint8_t> bytes) {
  COVEY_CHECK(bytes.size() == FactorBytes(format, range, factors.terms));
  const size_t stride = factors.left.size() / factors.terms;
  const size_t first = range.first_row() - factors.first_row;
  const size_t row_bytes = EncodedBytes(format, range.rows());
  for (size_t term = 0; term < factors.terms; ++term) {
    Encode(format, factors.left.subspan(term * stride + first, range.rows()),
           bytes.subspan(term * row_bytes, row_bytes));
  }
  EncodeRows(format, range.columns, factors.right, bytes.subspan(factors.terms * row_bytes));
}

Factors FactorsIn(const MatrixRange& range, size_t terms, std::span<const float> frame) {
  const size_t left = terms * range.rows();
  return {.terms = terms,
          .left = frame.first(left),
          .right = frame.subspan(left, terms * range.columns),
          .first_row = range.first_row()};
}

Factors DecodeFactors(WireFormat format, const MatrixRange& range, size_t terms,
                      std::span<const uint8_t> bytes, std::span<float> memory) {
  const size_t left_bytes = EncodedRowBytes(format, range.rows(), terms);
  const size_t left = terms * range.rows();
  DecodeRows(format, range.rows(), bytes.first(left_bytes), memory.first(left));
  DecodeRows(format, range.columns, bytes.subspan(left_bytes),
             memory.subspan(left, terms * range.columns));
  return FactorsIn(range, terms, memory);
}

void SumOuterProducts(const MatrixRange& range, const Factors& factors, std::span<float> elements) {
  COVEY_CHECK(elements.size() == range.elements && factors.terms > 0);
  const size_t stride = factors.left.size() / factors.terms;
  const uint64_t columns = range.columns;
  COVEY_CHECK(factors.right.size() == factors.terms * columns &&
              range.first_row() >= factors.first_row &&
              range.first_row() - factors.first_row + range.rows() <= stride);
  const uint64_t end = range.first_element + range.elements;
  for (uint64_t block = 0; block < columns; block += kColumnsAtATime) {
    for (uint64_t row = range.first_row(); row < range.first_row() + range.rows(); ++row) {
      const uint64_t from = std::max(row * columns + block, range.first_element);
      const uint64_t to = std::min(row * columns + std::min(block + kColumnsAtATime, columns), end);
      if (from >= to) continue;
      HWY_DYNAMIC_DISPATCH(SumTerms)
      (factors.left.data() + (row - factors.first_row), stride,
       factors.right.data() + (from - row * columns), columns, factors.terms,
       elements.data() + (from - range.first_element), to - from);
    }
  }
}

}  // namespace covey
#endif  // HWY_ONCE

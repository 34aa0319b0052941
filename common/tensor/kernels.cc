// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/kernels.h"

#include <algorithm>
#include <cstddef>
#include <span>

#include "common/base/check.h"
#include "common/tensor/float_bits.h"

// Compiles this file once for each instruction set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "common/tensor/kernels.cc"
#include "hwy/foreach_target.h"
// Chooses the widest that the processor has.
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace covey {
namespace {
namespace HWY_NAMESPACE {

void AddArrays(float* __restrict sum, const float* __restrict x, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = x[i] + sum[i];
}

void AddPairs(const float* __restrict a, const float* __restrict b, float* __restrict sum,
              size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = b[i] + a[i];
}

void KeepLosses(const float* __restrict wanted, const float* __restrict sent,
                float* __restrict residual, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    const float loss = wanted[i] - sent[i];
    residual[i] = (BitsOf(loss) & ~kFloatSign) < kFloatInfinity ? loss : 0.0f;
  }
}

double SquaresOf(const float* x, size_t count) {
  constexpr size_t kSums = 8;
  double sums[kSums] = {};
  const size_t whole = count / kSums * kSums;
  for (size_t i = 0; i < whole; i += kSums) {
    for (size_t s = 0; s < kSums; ++s) {
      const double value = x[i + s];
      sums[s] += value * value;
    }
  }
  for (size_t i = whole; i < count; ++i) {
    const double value = x[i];
    sums[i - whole] += value * value;
  }
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

void ScaleArray(float* x, float factor, size_t count) {
  for (size_t i = 0; i < count; ++i) x[i] *= factor;
}

}  // namespace HWY_NAMESPACE
}  // namespace
}  // namespace covey
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace covey {
namespace {

HWY_EXPORT(AddArrays);
HWY_EXPORT(AddPairs);
HWY_EXPORT(KeepLosses);
HWY_EXPORT(SquaresOf);
HWY_EXPORT(ScaleArray);

}  // namespace

void AddInto(std::span<float> sum, std::span<const float> x) {
  COVEY_CHECK(sum.size() == x.size());
  HWY_DYNAMIC_DISPATCH(AddArrays)(sum.data(), x.data(), sum.size());
}

void Add(std::span<const float> a, std::span<const float> b, std::span<float> sum) {
  COVEY_CHECK(a.size() == sum.size() && b.size() == sum.size());
  HWY_DYNAMIC_DISPATCH(AddPairs)(a.data(), b.data(), sum.data(), sum.size());
}

void KeepLoss(std::span<const float> wanted, std::span<const float> sent,
              std::span<float> residual) {
  COVEY_CHECK(wanted.size() == residual.size() && sent.size() == residual.size());
  HWY_DYNAMIC_DISPATCH(KeepLosses)(wanted.data(), sent.data(), residual.data(), residual.size());
}

double SumOfSquares(std::span<const float> x) {
  return HWY_DYNAMIC_DISPATCH(SquaresOf)(x.data(), x.size());
}

void Scale(std::span<float> x, float factor) {
  if (factor == 0) {
    std::fill(x.begin(), x.end(), 0.0f);
    return;
  }
  if (factor == 1) return;
  HWY_DYNAMIC_DISPATCH(ScaleArray)(x.data(), factor, x.size());
}

}  // namespace covey
#endif  // HWY_ONCE

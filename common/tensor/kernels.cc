// SPDX-License-Identifier: Apache-2.0
#include "common/tensor/kernels.h"

#include <algorithm>
#include <cstddef>

#include "common/base/check.h"
#include "common/tensor/kernel_macros.h"

namespace covey {
namespace {

COVEY_KERNEL void AddArrays(float* __restrict sum, const float* __restrict x, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = x[i] + sum[i];
}

COVEY_KERNEL void AddPairs(const float* __restrict a, const float* __restrict b,
                           float* __restrict sum, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] = b[i] + a[i];
}

}  // namespace

void AddInto(std::span<float> sum, std::span<const float> x) {
  COVEY_CHECK(sum.size() == x.size());
  AddArrays(sum.data(), x.data(), sum.size());
}

void Add(std::span<const float> a, std::span<const float> b, std::span<float> sum) {
  COVEY_CHECK(a.size() == sum.size() && b.size() == sum.size());
  AddPairs(a.data(), b.data(), sum.data(), sum.size());
}

void Scale(std::span<float> x, float factor) {
  if (factor == 0) {
    std::fill(x.begin(), x.end(), 0.0f);
    return;
  }
  if (factor == 1) return;
  for (float& value : x) value *= factor;
}

}  // namespace covey

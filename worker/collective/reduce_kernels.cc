#include "worker/collective/reduce_kernels.h"

#include <algorithm>
#include <cstddef>

#include "common/base/check.h"

namespace covey::worker {

void AddInto(std::span<float> into, std::span<const float> other) {
  COVEY_CHECK(into.size() == other.size());
  float* __restrict target = into.data();
  const float* __restrict source = other.data();
  const size_t count = into.size();
  for (size_t i = 0; i < count; ++i) target[i] = source[i] + target[i];
}

void Scale(std::span<float> values, float factor) {
  if (factor == 0) {
    std::fill(values.begin(), values.end(), 0.0f);
    return;
  }
  if (factor == 1) return;
  for (float& value : values) value *= factor;
}

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/fashion_mnist/sample_order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/base/random.h"

namespace covey::fashion_mnist {

SampleOrder::SampleOrder(const Options& options) : options_(options), order_(options.sample_count) {
  COVEY_CHECK(options.sample_count > 0 && options.batch_size > 0);
  COVEY_CHECK(options.sample_count - 1 <= std::numeric_limits<uint32_t>::max());
  COVEY_CHECK(options.rank < options.world_size);
  StartEpoch(0);
}

void SampleOrder::StartEpoch(uint64_t epoch) {
  // Starts from the identity, so that an epoch does not depend on earlier ones.
  std::iota(order_.begin(), order_.end(), 0);
  Random random = Random(options_.seed).Split(epoch);
  for (size_t i = order_.size() - 1; i > 0; --i) std::swap(order_[i], order_[random.Below(i + 1)]);
}

size_t SampleOrder::steps_per_epoch() const {
  const size_t step_size = options_.batch_size * options_.world_size;
  return (order_.size() + step_size - 1) / step_size;
}

std::span<const uint32_t> SampleOrder::Batch(size_t step) const {
  COVEY_CHECK(step < steps_per_epoch());
  const size_t step_size = options_.batch_size * options_.world_size;
  const size_t first = step * step_size;
  const size_t count = std::min(step_size, order_.size() - first);
  const size_t begin = count * options_.rank / options_.world_size;
  const size_t end = count * (options_.rank + 1) / options_.world_size;
  return std::span(order_).subspan(first + begin, end - begin);
}

}  // namespace covey::fashion_mnist

// SPDX-License-Identifier: Apache-2.0
#include "server/shard/gradient_sum.h"

#include <cstdint>
#include <cstring>
#include <memory>
#include <utility>

#include "common/base/check.h"
#include "common/base/planted_bug.h"
#include "common/tensor/kernels.h"
#include "server/sparse/row_sums.h"

namespace covey::server {
namespace {

// Memory that belongs to the sum.
template <typename T>
Buffer PartOf(const std::shared_ptr<const RowSums>& sum, const std::vector<T>& elements) {
  return Buffer::Wrap(elements.data(), elements.size() * sizeof(T), [sum] {});
}

}  // namespace

void GradientSum::Add(const GradientBuffers& gradient, uint64_t samples) {
  if (row_width_ != 0 || empty()) {
    parts_.push_back({gradient, samples});
    is_spare_ = false;
  } else {
    AddElements(gradient.elements);
  }
}

void GradientSum::AddElements(const Buffer& elements) {
  Buffer& sum = parts_.front().gradient.elements;
  COVEY_CHECK(elements.size() == sum.size());
  if (!is_spare_) {
    Buffer spare = spares_->Take(sum.size());
    covey::Add(sum.As<float>(), elements.As<float>(), spare.MutableAs<float>());
    sum = std::move(spare);
    is_spare_ = true;
    return;
  }
  AddInto(sum.MutableAs<float>(), elements.As<float>());
}

void GradientSum::Keep() {
  if (empty()) return;
  // Those before it were kept when they were added.
  Buffer& newest = parts_.back().gradient.elements;
  newest = KeptElements(newest, row_width_ != 0, *spares_);
}

void GradientSum::Finish(RoundMean mean) {
  if (parts_.size() < 2) return;
  std::vector<KeyedRows> gradients;
  uint64_t samples = 0;
  for (const auto& [part, samples_of_part] : parts_) {
    gradients.push_back(
        {.keys = part.spans().keys, .rows = part.spans().elements, .samples = samples_of_part});
    samples += samples_of_part;
  }
  if (Planted(PlantedBug::kSumRowsTwice)) {
    gradients.push_back(gradients.back());
    gradients.back().samples = 0;
  }
  const auto sum = std::make_shared<RowSums>();
  SumByKey(gradients, row_width_, *sum);
  if (mean == RoundMean::kOfHolders && !Planted(PlantedBug::kRowMeanOfAll)) {
    StandForAll(samples, row_width_, *sum);
  }
  parts_ = {{.gradient = {.elements = PartOf(sum, sum->rows), .keys = PartOf(sum, sum->keys)},
             .samples = samples}};
}

size_t GradientSum::bytes() const {
  size_t bytes = 0;
  for (const Part& part : parts_) bytes += part.gradient.bytes();
  return bytes;
}

EncodedGradient GradientSum::Encoded() const {
  EncodedGradient encoded{.frame = elements()};
  if (row_width_ != 0) encoded.keys = covey::Encoded(gradient().keys);
  return encoded;
}

}  // namespace covey::server

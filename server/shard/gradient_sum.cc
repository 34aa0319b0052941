// SPDX-License-Identifier: Apache-2.0
#include "server/shard/gradient_sum.h"

#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/kernels.h"

namespace covey::server {

void GradientSum::Add(const Buffer& gradient) {
  if (sum_.empty()) {
    sum_ = gradient;
    is_spare_ = false;
    return;
  }
  COVEY_CHECK(gradient.size() == sum_.size());
  if (!is_spare_) {
    Buffer spare = spares_->Take(sum_.size());
    covey::Add(sum_.As<float>(), gradient.As<float>(), spare.MutableAs<float>());
    sum_ = std::move(spare);
    is_spare_ = true;
    return;
  }
  AddInto(sum_.MutableAs<float>(), gradient.As<float>());
}

void GradientSum::Keep() {
  if (sum_.is_lent()) CopyToSpare();
}

void GradientSum::CopyToSpare() {
  Buffer spare = spares_->Take(sum_.size());
  std::memcpy(spare.MutableData(), sum_.data(), sum_.size());
  sum_ = std::move(spare);
  is_spare_ = true;
}

}  // namespace covey::server

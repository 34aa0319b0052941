// SPDX-License-Identifier: Apache-2.0
#include "server/shard/gradient_sum.h"

#include <cstring>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/kernels.h"

namespace covey::server {

GradientSum::GradientSum(GradientSum&& other) noexcept
    : spares_(other.spares_),
      sum_(std::move(other.sum_)),
      is_spare_(std::exchange(other.is_spare_, false)) {}

GradientSum& GradientSum::operator=(GradientSum&& other) noexcept {
  std::swap(spares_, other.spares_);
  std::swap(sum_, other.sum_);
  std::swap(is_spare_, other.is_spare_);
  return *this;
}

GradientSum::~GradientSum() {
  if (is_spare_) spares_->Retire(std::move(sum_));
}

void GradientSum::Add(const Buffer& gradient) {
  if (sum_.empty()) {
    sum_ = gradient;
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
  if (sum_.is_lent()) MoveToSpare();
}

void GradientSum::MoveToSpare() {
  Buffer spare = spares_->Take(sum_.size());
  std::memcpy(spare.MutableData(), sum_.data(), sum_.size());
  sum_ = std::move(spare);
  is_spare_ = true;
}

}  // namespace covey::server

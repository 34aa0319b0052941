// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/bucket_buffers.h"

#include <algorithm>

namespace covey::worker {

BucketBuffers::BucketBuffers(const Bucket& bucket, bool error_feedback)
    : pieces_(bucket.pieces), elements_(bucket.element_count) {
  if (error_feedback) residual_.assign(elements_, 0);
}

void BucketBuffers::PackGradient(const std::vector<TensorRequest>& requests) {
  gradient_.resize(elements_);
  for (const TensorRequest& request : requests) {
    for (const Bucket::Piece& piece : pieces_) {
      if (piece.tensor != request.tensor) continue;
      float* const packed = gradient_.data() + piece.elements.first;
      if (request.samples == 0) {
        std::fill_n(packed, piece.elements.count, 0.0f);
        continue;
      }
      // One pass: the sum is taken here, and the program's own stays for a second time.
      const auto weight = static_cast<float>(request.samples);
      std::transform(request.gradient.begin(), request.gradient.end(), packed,
                     [weight](float element) { return element * weight; });
    }
  }
}

BucketBuffers::StepInput BucketBuffers::BeginStep(const std::vector<TensorRequest>& requests) {
  if (requests.empty()) {
    gradient_.assign(elements_, 0);
  } else {
    PackGradient(requests);
  }
  kept_residual_ = residual_;
  return {.gradient = gradient_, .residual = residual_};
}

BucketBuffers::StepInput BucketBuffers::RepeatStep(const std::vector<TensorRequest>& requests,
                                                   Without without) {
  if (!requests.empty()) {
    PackGradient(requests);
  } else if (without == Without::kKept) {
    gradient_ = kept_gradient_;
  } else {
    gradient_.assign(elements_, 0);
  }
  residual_ = kept_residual_;
  return {.gradient = gradient_, .residual = residual_};
}

std::span<float> BucketBuffers::values() {
  values_.resize(elements_);
  return values_;
}

void BucketBuffers::CopyValuesTo(const TensorRequest& request) const {
  for (const Bucket::Piece& piece : pieces_) {
    if (piece.tensor != request.tensor) continue;
    const auto from = std::span(values_).subspan(piece.elements.first, piece.elements.count);
    std::copy(from.begin(), from.end(), request.values.begin());
  }
}

}  // namespace covey::worker

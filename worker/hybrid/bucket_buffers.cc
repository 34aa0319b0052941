// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/bucket_buffers.h"

#include <algorithm>
#include <utility>

namespace covey::worker {

BucketBuffers::BucketBuffers(const Bucket& bucket, const Options& options, Release release)
    : pieces_(bucket.pieces),
      elements_(bucket.element_count),
      weighted_(options.weighted),
      release_(std::move(release)) {
  if (options.error_feedback) residual_.assign(elements_, 0);
}

std::span<float> BucketBuffers::TakeGradient() {
  if (!gradient_.empty() && !gradient_.IsUnique()) release_(gradient_);
  if (!gradient_.IsUnique()) gradient_ = Buffer::Allocate(elements_ * sizeof(float));
  return gradient_.MutableAs<float>();
}

void BucketBuffers::PackGradient(const std::vector<TensorRequest>& requests,
                                 std::span<float> gradient) const {
  for (const TensorRequest& request : requests) {
    for (const Bucket::Piece& piece : pieces_) {
      if (piece.tensor != request.tensor) continue;
      float* const packed = gradient.data() + piece.elements.first;
      if (request.samples == 0) {
        std::fill_n(packed, piece.elements.count, 0.0f);
        continue;
      }
      // One pass: the sum is taken here, and the program's own stays for a second time.
      const float weight = weighted_ ? static_cast<float>(request.samples) : 1.0f;
      std::transform(request.gradient.begin(), request.gradient.end(), packed,
                     [weight](float element) { return element * weight; });
    }
  }
}

BucketBuffers::StepInput BucketBuffers::BeginStep(const std::vector<TensorRequest>& requests) {
  const std::span<float> gradient = TakeGradient();
  if (requests.empty()) {
    std::fill(gradient.begin(), gradient.end(), 0.0f);
  } else {
    PackGradient(requests, gradient);
  }
  kept_residual_ = residual_;
  return Input(gradient);
}

void BucketBuffers::KeepGradient() {
  const std::span<const float> gradient = gradient_.As<float>();
  kept_gradient_.assign(gradient.begin(), gradient.end());
}

BucketBuffers::StepInput BucketBuffers::RepeatStep(const std::vector<TensorRequest>& requests,
                                                   Without without) {
  const std::span<float> gradient = TakeGradient();
  if (!requests.empty()) {
    PackGradient(requests, gradient);
  } else if (without == Without::kKept) {
    std::copy(kept_gradient_.begin(), kept_gradient_.end(), gradient.begin());
  } else {
    std::fill(gradient.begin(), gradient.end(), 0.0f);
  }
  residual_ = kept_residual_;
  StepInput input = Input(gradient);
  input.repeats = true;
  return input;
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

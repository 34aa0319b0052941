// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/gradient_clip.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "common/tensor/kernels.h"

namespace covey::worker {
namespace {

// torch.nn.utils.clip_grad_norm_ adds it to the norm, too.
constexpr double kNormMin = 1e-6;

}  // namespace

GradientClip::GradientClip(Communicator& group, double max_norm)
    : max_norm_(max_norm),
      squares_(std::make_shared<StepSums>(group, kNormStream, "the norm of the gradient", 1)) {}

void GradientClip::BeginGeneration(std::vector<Step> finished, std::optional<GradientNorm> known) {
  squares_->BeginGeneration(std::move(finished));
  newest_ = known;
  if (known) last_norm_ = known->norm;
}

float GradientClip::Factor(double norm) const {
  if (!std::isfinite(norm)) return 1;
  return static_cast<float>(std::min(1.0, max_norm_ / (norm + kNormMin)));
}

void GradientClip::Add(absl::Time now, uint32_t bucket, Step step, std::span<const float> sum,
                       uint64_t samples, absl::Time deadline, Then then, Outbox& outbox) {
  if (newest_ && newest_->step == step) return then(now, Factor(newest_->norm), outbox);
  double square = 0;
  if (samples > 0) {
    const auto divisor = static_cast<double>(samples);
    square = SumOfSquares(sum) / divisor / divisor;
  }
  squares_->Add(
      now, bucket, step, {&square, 1}, deadline,
      [weak = weak_from_this(), step, then = std::move(then)](
          absl::Time now, const StepSums::Sums* sums, Outbox& outbox) {
        const std::shared_ptr<GradientClip> self = weak.lock();
        // What waits ends with the group's failure.
        if (self == nullptr || sums == nullptr) return;
        self->last_norm_ = std::sqrt(sums->values[0]);
        self->newest_ = GradientNorm{.step = step, .norm = *self->last_norm_};
        then(now, self->Factor(*self->last_norm_), outbox);
      },
      outbox);
}

}  // namespace covey::worker

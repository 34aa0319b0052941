// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/gradient_clip.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/kernels.h"

namespace covey::worker {
namespace {

// torch.nn.utils.clip_grad_norm_ adds it to the norm, too.
constexpr double kNormMin = 1e-6;

// A double travels as four whole numbers of 16 bits, which float32 holds exactly.
constexpr size_t kWords = 4;

void WriteWords(double value, std::span<float> words) {
  const auto bits = std::bit_cast<uint64_t>(value);
  for (size_t i = 0; i < kWords; ++i) words[i] = static_cast<float>(bits >> 16 * i & 0xffff);
}

double ReadWords(std::span<const float> words) {
  uint64_t bits = 0;
  for (size_t i = 0; i < kWords; ++i) {
    const float word = words[i];
    // Only a member with another protocol sends anything else.
    if (word >= 0 && word <= 0xffff) bits |= static_cast<uint64_t>(word) << 16 * i;
  }
  return std::bit_cast<double>(bits);
}

}  // namespace

void GradientClip::BeginGeneration(std::vector<Step> finished, std::optional<GradientNorm> known) {
  ++generations_;
  finished_ = std::move(finished);
  pending_.clear();
  newest_ = known;
  if (known) last_norm_ = known->norm;
}

float GradientClip::Factor(double norm) const {
  if (!std::isfinite(norm)) return 1;
  return static_cast<float>(std::min(1.0, max_norm_ / (norm + kNormMin)));
}

void GradientClip::Add(absl::Time now, uint32_t bucket, Step step, std::span<const float> sum,
                       uint64_t samples, absl::Time deadline, Then then, Outbox& outbox) {
  COVEY_CHECK(bucket < finished_.size());
  if (newest_ && newest_->step == step) return then(now, Factor(newest_->norm), outbox);
  Pending& pending = pending_[step];
  pending.squares.resize(finished_.size());
  if (samples > 0) {
    const auto divisor = static_cast<double>(samples);
    pending.squares[bucket] = SumOfSquares(sum) / divisor / divisor;
  }
  pending.waiting.push_back(std::move(then));
  // The buckets that go through this step in this generation.
  const auto expected = static_cast<size_t>(
      std::count_if(finished_.begin(), finished_.end(), [&](Step last) { return last < step; }));
  if (++pending.added < expected) return;
  double squares = 0;
  for (const double of_bucket : pending.squares) squares += of_bucket;
  Gather(now, step, squares, deadline, outbox);
}

void GradientClip::Gather(absl::Time now, Step step, double squares, absl::Time deadline,
                          Outbox& outbox) {
  const auto words = std::make_shared<std::vector<float>>(kWords * group_.size());
  WriteWords(squares, std::span(*words).subspan(kWords * group_.rank(), kWords));
  Collective gather{.id = {kNormStream, step.value()},
                    .kind = CollectiveKind::kAllGather,
                    .name = "the norm of the gradient",
                    .data = *words,
                    .owner = words,
                    .deadline = deadline,
                    .priority = -1,  // All buckets wait for it.
                    .is_change_point = false};
  for (uint32_t rank = 0; rank < group_.size(); ++rank) {
    gather.parts.push_back({kWords * rank, kWords});
  }
  gather.arrived = [weak = weak_from_this(), words, step, generation = generations_](
                       absl::Time now, const CollectiveResult&, Outbox& outbox) {
    const std::shared_ptr<GradientClip> self = weak.lock();
    if (self != nullptr && self->generations_ == generation) {
      self->Gathered(now, step, *words, outbox);
    }
  };
  // What waits ends with the group's failure.
  gather.done = [](absl::Time, const CollectiveResult&, Outbox&) {};
  group_.Start(now, std::move(gather), outbox);
}

void GradientClip::Gathered(absl::Time now, Step step, std::span<const float> words,
                            Outbox& outbox) {
  double squares = 0;
  for (size_t first = 0; first < words.size(); first += kWords) {
    squares += ReadWords(words.subspan(first, kWords));
  }
  newest_ = GradientNorm{.step = step, .norm = std::sqrt(squares)};
  last_norm_ = newest_->norm;
  const float factor = Factor(*last_norm_);
  // Taken out first: a bucket may go on to the next step inside its call.
  const auto pending = pending_.extract(step);
  for (const Then& then : pending.mapped().waiting) then(now, factor, outbox);
}

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/noise_meter.h"

#include <cmath>
#include <limits>
#include <utility>

#include "common/tensor/kernels.h"

namespace covey::worker {
namespace {

// What each member adds for each bucket.
enum Number : size_t { kOwn, kGroup, kSamples, kMembers, kNumbers };

// Not where a member has stepped aside with some of its buckets: their mean is a fraction.
bool IsCount(double value) {
  return value >= 1 && value <= std::numeric_limits<uint32_t>::max() && value == std::floor(value);
}

}  // namespace

NoiseMeter::NoiseMeter(Communicator& group)
    : sums_(std::make_shared<StepSums>(group, kNoiseStream, "the norms of the members' gradients",
                                       kNumbers)) {}

void NoiseMeter::BeginGeneration(std::vector<Step> finished) {
  sums_->BeginGeneration(std::move(finished));
  newest_ = Step();
  starts_over_ = true;
  for (const auto& call : std::exchange(waiting_, {})) call();
}

void NoiseMeter::Add(absl::Time now, uint32_t bucket, Step step, const Bucket& measured,
                     absl::Time deadline, Outbox& outbox) {
  double numbers[kNumbers] = {};
  if (measured.own_samples > 0) {
    const auto samples = static_cast<double>(measured.own_samples);
    numbers[kOwn] = measured.own_square / samples;
    numbers[kSamples] = samples;
    numbers[kMembers] = 1;
  }
  numbers[kGroup] = SumOfSquares(measured.sum);
  sums_->Add(
      now, bucket, step, numbers, deadline,
      [weak = weak_from_this(), step](absl::Time, const StepSums::Sums* sums, Outbox&) {
        if (const std::shared_ptr<NoiseMeter> self = weak.lock()) self->Known(step, sums);
      },
      outbox);
}

void NoiseMeter::Known(Step step, const StepSums::Sums* sums) {
  if (step <= newest_) return;  // Another bucket has told it.
  newest_ = step;
  if (sums != nullptr && sums->buckets == sums_->buckets()) {
    const auto buckets = static_cast<double>(sums->buckets);
    const double samples = sums->values[kSamples] / buckets;
    const double members = sums->values[kMembers] / buckets;
    if (IsCount(members) && IsCount(samples)) {
      norms_.push_back({.step = step.value(),
                        .starts_over = std::exchange(starts_over_, false),
                        .members = static_cast<uint32_t>(members),
                        .samples = static_cast<uint64_t>(samples),
                        .member_square = sums->values[kOwn] / samples,
                        .group_square = sums->values[kGroup] / samples / samples});
    }
  }
  if (norms_.size() > kNormsMax) {
    norms_[1].starts_over |= norms_[0].starts_over;
    norms_.pop_front();
  }
  if (sums_->gathering()) return;
  for (const auto& call : std::exchange(waiting_, {})) call();
}

void NoiseMeter::WhenKnown(std::function<void()> call) {
  if (!sums_->gathering()) return call();
  waiting_.push_back(std::move(call));
}

std::vector<GradientNorms> NoiseMeter::Take() {
  std::vector<GradientNorms> taken(norms_.begin(), norms_.end());
  norms_.clear();
  return taken;
}

}  // namespace covey::worker

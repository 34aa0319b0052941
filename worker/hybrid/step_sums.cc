// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_sums.h"

#include <algorithm>
#include <bit>

#include "common/base/check.h"

namespace covey::worker {
namespace {

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

void StepSums::BeginGeneration(std::vector<Step> finished) {
  ++generations_;
  finished_ = std::move(finished);
  pending_.clear();
  gathering_ = 0;
}

void StepSums::Add(absl::Time now, uint32_t bucket, Step step, std::span<const double> numbers,
                   absl::Time deadline, Then then, Outbox& outbox) {
  COVEY_CHECK(bucket < finished_.size() && numbers.size() == count_);
  Pending& pending = pending_[step];
  pending.numbers.resize(finished_.size() * count_);
  std::copy(numbers.begin(), numbers.end(),
            pending.numbers.begin() + static_cast<ptrdiff_t>(bucket * count_));
  pending.waiting.push_back(std::move(then));
  // The buckets that go through this step in this generation.
  const auto expected = static_cast<size_t>(
      std::count_if(finished_.begin(), finished_.end(), [&](Step last) { return last < step; }));
  if (++pending.added == expected) Gather(now, step, deadline, outbox);
}

void StepSums::Gather(absl::Time now, Step step, absl::Time deadline, Outbox& outbox) {
  const size_t member_words = kWords * count_;
  const auto words = std::make_shared<std::vector<float>>(member_words * group_.size());
  const std::span<float> own = std::span(*words).subspan(member_words * group_.rank());
  const std::vector<double>& numbers = pending_.at(step).numbers;
  for (size_t n = 0; n < count_; ++n) {
    double sum = 0;
    for (size_t i = n; i < numbers.size(); i += count_) sum += numbers[i];
    WriteWords(sum, own.subspan(kWords * n, kWords));
  }
  Collective gather{.id = {stream_, step.value()},
                    .kind = CollectiveKind::kAllGather,
                    .name = name_,
                    .data = *words,
                    .owner = words,
                    .deadline = deadline,
                    .priority = -1,  // All buckets may wait for it.
                    .is_change_point = false};
  for (uint32_t rank = 0; rank < group_.size(); ++rank) {
    gather.parts.push_back({member_words * rank, member_words});
  }
  const auto when = [weak = weak_from_this(), step, generation = generations_](
                        absl::Time now, const std::vector<float>* words, Outbox& outbox) {
    const std::shared_ptr<StepSums> self = weak.lock();
    if (self != nullptr && self->generations_ == generation) {
      self->Gathered(now, step, words, outbox);
    }
  };
  gather.arrived = [when, words](absl::Time now, const CollectiveResult&, Outbox& outbox) {
    when(now, words.get(), outbox);
  };
  gather.done = [when](absl::Time now, const CollectiveResult& result, Outbox& outbox) {
    if (!result.status.ok()) when(now, nullptr, outbox);
  };
  ++gathering_;
  group_.Start(now, std::move(gather), outbox);
}

void StepSums::Gathered(absl::Time now, Step step, const std::vector<float>* words,
                        Outbox& outbox) {
  // Taken out first: a bucket may go on to the next step inside its call.
  const auto pending = pending_.extract(step);
  if (pending.empty()) return;  // They had arrived before the failure.
  --gathering_;
  Sums sums{.buckets = pending.mapped().added, .values = std::vector<double>(count_)};
  if (words != nullptr) {
    const std::span<const float> all(*words);
    for (size_t i = 0; i < all.size() / kWords; ++i) {
      sums.values[i % count_] += ReadWords(all.subspan(kWords * i, kWords));
    }
  }
  for (const Then& then : pending.mapped().waiting) {
    then(now, words != nullptr ? &sums : nullptr, outbox);
  }
}

}  // namespace covey::worker

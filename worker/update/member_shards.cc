// SPDX-License-Identifier: Apache-2.0
#include "worker/update/member_shards.h"

#include <numeric>
#include <utility>

#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/optimizer/kernels.h"

namespace covey::worker {

absl::StatusOr<MemberShards> MemberShards::Create(const Config& config,
                                                  std::span<const size_t> shards) {
  COVEY_ASSIGN_OR_RETURN(auto optimizer, MakeOptimizer(config.optimizer));
  COVEY_ASSIGN_OR_RETURN(const auto schedule, LearningRateSchedule::Create(config.learning_rate));
  return MemberShards(config, std::move(optimizer), schedule, shards);
}

MemberShards::MemberShards(const Config& config, std::unique_ptr<Optimizer> optimizer,
                           const LearningRateSchedule& schedule, std::span<const size_t> shards)
    : refuses_non_finite_(config.refuses_non_finite),
      optimizer_(std::move(optimizer)),
      schedule_(schedule),
      values_(std::accumulate(shards.begin(), shards.end(), size_t{0})),
      slots_(static_cast<size_t>(optimizer_->state_slots()), std::vector<float>(values_.size())) {
  size_t first = 0;
  for (const size_t count : shards) {
    Shard& shard = shards_.emplace_back();
    shard.values = std::span(values_).subspan(first, count);
    for (std::vector<float>& slot : slots_) {
      shard.slots.push_back(InPlace(std::span(slot).subspan(first, count)));
    }
    first += count;
  }
}

absl::Status MemberShards::Apply(std::span<const float> sum, uint64_t samples, double rate_factor) {
  COVEY_CHECK(sum.size() == values_.size());
  if (samples == 0) return absl::OkStatus();
  if (refuses_non_finite_ && !AllFinite(sum)) {
    return absl::InvalidArgumentError(
        "the group's gradient holds NaN or infinity; nothing was applied. Lower the learning rate, "
        "or let the table accept such gradients");
  }
  samples_ += samples;
  const UpdateContext context = {.learning_rate = schedule_.RateAt(samples_) * rate_factor,
                                 .gradient_scale = 1 / static_cast<double>(samples),
                                 .update_index = ++updates_};
  size_t first = 0;
  for (const Shard& shard : shards_) {
    optimizer_->Apply(context, sum.subspan(first, shard.values.size()), shard.values, shard.values,
                      shard.slots);
    first += shard.values.size();
  }
  return absl::OkStatus();
}

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "worker/update/member_update.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace covey::worker {

absl::StatusOr<std::unique_ptr<MemberUpdate>> MemberUpdate::Create(
    ServerLink& link, Communicator& group, std::vector<PartShards> shards,
    std::span<const MemberShards::Config> configs) {
  COVEY_CHECK(configs.size() == shards.size());
  std::vector<MemberShards> owned;
  for (size_t i = 0; i < shards.size(); ++i) {
    COVEY_ASSIGN_OR_RETURN(MemberShards values, MemberShards::Create(configs[i], shards[i].shards));
    owned.push_back(std::move(values));
  }
  return absl::WrapUnique(new MemberUpdate(link, group, std::move(shards), std::move(owned)));
}

void MemberUpdate::Apply(absl::Time now, PartStep step, Outbox& outbox) {
  COVEY_CHECK(fetched_);
  step.sum_memory = Buffer();
  for (size_t i = 0; i < shards_.size(); ++i) {
    const PartRange range = shards_[i].elements;
    const absl::Status applied = owned_[i].Apply(step.sum.subspan(range.first, range.count),
                                                 step.samples, step.RateFactorOf(shards_[i].piece));
    if (!applied.ok()) {
      const absl::Status status = Annotate(
          absl::StrCat("tensor ", shards_[i].name, " in step ", step.step.value()), applied);
      group_.Abort(now, status, outbox);
      step.done(now, status, outbox);
      return;
    }
    const std::span<const float> values = owned_[i].values();
    std::copy(values.begin(), values.end(), step.values.begin() + range.first);
  }
  step.done(now, absl::OkStatus(), outbox);
}

void MemberUpdate::Fetch(absl::Time now, PartStep step, Outbox& outbox) {
  if (fetched_) {
    for (size_t i = 0; i < shards_.size(); ++i) {
      const std::span<const float> values = owned_[i].values();
      std::copy(values.begin(), values.end(), step.values.begin() + shards_[i].elements.first);
    }
    step.done(now, absl::OkStatus(), outbox);
    return;
  }
  PartStep first = step;
  first.done = [this, step](absl::Time now, const absl::Status& status, Outbox& outbox) {
    if (status.ok()) {
      for (size_t i = 0; i < shards_.size(); ++i) {
        const PartRange range = shards_[i].elements;
        const auto from = step.values.subspan(range.first, range.count);
        std::copy(from.begin(), from.end(), owned_[i].values().begin());
      }
      fetched_ = true;
    }
    step.done(now, status, outbox);
  };
  first_values_.Fetch(now, std::move(first), outbox);
}

}  // namespace covey::worker

#include "worker/update/central_update.h"

#include <utility>

namespace covey::worker {

CentralUpdate::CentralUpdate(ServerLink& link, std::vector<PartShards> shards,
                             const PushFormat& format)
    : link_(link), shards_(std::move(shards)), format_(format.format) {
  if (!format.error_feedback || shards_.empty()) return;
  const PartRange last = shards_.back().elements;
  residual_.assign(last.first + last.count, 0);
}

void CentralUpdate::Apply(absl::Time now, PartStep step, Outbox& outbox) {
  const PartStep::Done done = AfterAll(shards_.size(), std::move(step.done));
  for (const PartShards& shards : shards_) {
    const PartRange range = shards.elements;
    link_.Start(now,
                {.table = shards.table,
                 .first_shard = shards.first_shard,
                 .shard_count = static_cast<uint32_t>(shards.shards.size()),
                 .sum = step.sum.empty() ? step.sum : step.sum.subspan(range.first, range.count),
                 .samples = step.samples,
                 .format = format_,
                 .residual = step.sum.empty() || residual_.empty()
                                 ? std::span<float>()
                                 : std::span(residual_).subspan(range.first, range.count),
                 .step = step.step,
                 .values = step.values.subspan(range.first, range.count),
                 .deadline = step.deadline,
                 .done = done},
                outbox);
  }
}

void CentralUpdate::Fetch(absl::Time now, PartStep step, Outbox& outbox) {
  step.sum = {};
  Apply(now, std::move(step), outbox);
}

}  // namespace covey::worker

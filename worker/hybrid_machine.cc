#include "worker/hybrid_machine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "worker/collective/reduce_kernels.h"

namespace covey::worker {

// One tensor on its way. Its three stages share it; the last to end calls done.
struct HybridMachine::Journey {
  Work work;
  Step step;  // 0 = a pull
  uint64_t gather = 0;
  int unfinished = 0;
  absl::Status status;
};

absl::Status HybridMachine::SetTables(const ClusterView& view, std::span<const TableId> tables) {
  COVEY_CHECK(group_.formed());
  std::vector<const proto::Table*> found;
  for (const TableId id : tables) {
    found.push_back(view.FindTable(id));
    if (found.back() == nullptr) {
      return absl::NotFoundError(absl::StrCat("table ", id.value(), " is not in the view of epoch ",
                                              view.epoch().value(), "; create it first"));
    }
  }
  const PartMap map(found, group_.size());
  tensors_.clear();
  for (size_t i = 0; i < found.size(); ++i) {
    const proto::Shard& last = found[i]->shards(found[i]->shards_size() - 1);
    tensors_.push_back({.table = tables[i],
                        .name = absl::StrCat("'", found[i]->spec().name(), "'"),
                        .element_count = last.first_element() + last.element_count(),
                        .ranges = map.ranges_of(i),
                        .own = map.parts_of(i)[group_.rank()]});
  }
  return absl::OkStatus();
}

void HybridMachine::Submit(absl::Time now, Work work, Outbox& outbox) {
  const Tensor& tensor = tensors_[work.tensor];
  COVEY_CHECK(work.gradient.size() == tensor.element_count && step_.value() > 0);
  const auto journey = std::make_shared<Journey>();
  journey->work = std::move(work);
  journey->step = step_;
  journey->unfinished = 2;
  Scale(journey->work.gradient, static_cast<float>(journey->work.samples));
  // First the gather, so that its number is known when the sum is complete, which may be at once.
  StartGather(now, journey, outbox);
  group_.Start(
      now,
      {.kind = CollectiveKind::kReduceScatter,
       .name = tensor.name,
       .data = journey->work.gradient,
       .parts = tensor.ranges,
       .samples = journey->work.samples,
       .deadline = journey->work.deadline,
       .arrived = [this, journey](
                      absl::Time now, const CollectiveResult& result,
                      Outbox& outbox) { Exchange(now, journey, result.samples, outbox); },
       .done = [this, journey](absl::Time now, const CollectiveResult& result,
                               Outbox& outbox) { Settle(now, journey, result.status, outbox); }},
      outbox);
}

void HybridMachine::Pull(absl::Time now, Work work, Outbox& outbox) {
  const auto journey = std::make_shared<Journey>();
  journey->work = std::move(work);
  journey->unfinished = 1;
  StartGather(now, journey, outbox);
  Exchange(now, journey, 0, outbox);
}

void HybridMachine::StartGather(absl::Time now, const std::shared_ptr<Journey>& journey,
                                Outbox& outbox) {
  const Tensor& tensor = tensors_[journey->work.tensor];
  COVEY_CHECK(journey->work.values.size() == tensor.element_count);
  journey->gather = group_.Start(
      now,
      {.kind = CollectiveKind::kAllGather,
       .name = tensor.name,
       .data = journey->work.values,
       .parts = tensor.ranges,
       .held = true,
       .deadline = journey->work.deadline,
       .done = [this, journey](absl::Time now, const CollectiveResult& result,
                               Outbox& outbox) { Settle(now, journey, result.status, outbox); }},
      outbox);
}

// Own part: gradient to the servers (in a step), values back, values to the other members.
void HybridMachine::Exchange(absl::Time now, const std::shared_ptr<Journey>& journey,
                             uint64_t samples, Outbox& outbox) {
  const Tensor& tensor = tensors_[journey->work.tensor];
  if (tensor.own.shard_count == 0) {
    group_.Contribute(now, journey->gather, outbox);
    return;
  }
  if (!group_.failure().ok()) return;
  const PartRange own = tensor.own.elements;
  client::Operation operation;
  operation.table = tensor.table;
  operation.first_shard = tensor.own.first_shard;
  operation.shard_count = tensor.own.shard_count;
  if (journey->step.value() > 0) {
    operation.gradient = journey->work.gradient.subspan(own.first, own.count);
    operation.samples = std::max<uint64_t>(samples, 1);
  }
  operation.values = journey->work.values.subspan(own.first, own.count);
  operation.group = client::GroupIdentity{
      .group = group_.id(), .generation = group_.generation(), .step = journey->step};
  operation.read = {.step = journey->step, .group = group_.id()};
  operation.deadline = journey->work.deadline;
  operation.done = [this, journey](absl::Time now, const client::OperationResult& result,
                                   Outbox& outbox) {
    if (!result.status.ok()) {
      group_.Abort(now, result.status, outbox);
    } else {
      if (journey->step.value() > 0) {
        staleness_sum_ += result.staleness;
        ++staleness_count_;
      }
      group_.Contribute(now, journey->gather, outbox);
    }
    Settle(now, journey, result.status, outbox);
  };
  ++journey->unfinished;
  const absl::Status started = client_.Start(now, std::move(operation), outbox);
  if (started.ok()) return;
  group_.Abort(now, started, outbox);
  Settle(now, journey, started, outbox);
}

void HybridMachine::Settle(absl::Time now, const std::shared_ptr<Journey>& journey,
                           const absl::Status& status, Outbox& outbox) {
  if (!status.ok() && journey->status.ok()) journey->status = status;
  const bool over = --journey->unfinished == 0;
  // No member waits for what the others can no longer give: the group's first error is everybody's.
  if (!group_.failure().ok()) client_.FailGroup(now, group_.id(), group_.failure(), outbox);
  if (over && journey->work.done) journey->work.done(now, journey->status, outbox);
}

double HybridMachine::TakeStaleness() {
  const double mean = staleness_count_ == 0 ? 0
                                            : static_cast<double>(staleness_sum_) /
                                                  static_cast<double>(staleness_count_);
  staleness_sum_ = 0;
  staleness_count_ = 0;
  return mean;
}

}  // namespace covey::worker

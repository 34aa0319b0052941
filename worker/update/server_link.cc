#include "worker/update/server_link.h"

#include <utility>

namespace covey::worker {

void ServerLink::Start(absl::Time now, Transfer transfer, Outbox& outbox) {
  if (!group_.failure().ok()) {
    transfer.done(now, group_.failure(), outbox);
    return;
  }
  const bool push = !transfer.sum.empty();
  client::Operation operation;
  operation.table = transfer.table;
  operation.first_shard = transfer.first_shard;
  operation.shard_count = transfer.shard_count;
  operation.gradient = transfer.sum;
  operation.values = transfer.values;
  operation.samples = transfer.samples;
  operation.format = transfer.format;
  operation.residual = transfer.residual;
  operation.group = client::GroupIdentity{
      .group = group_.id(), .generation = group_.generation(), .step = transfer.step};
  operation.read = {.step = transfer.step, .group = group_.id()};
  operation.deadline = transfer.deadline;
  operation.done = [this, push, round = group_.round(), done = transfer.done](
                       absl::Time now, const client::OperationResult& result, Outbox& outbox) {
    if (!result.status.ok()) {
      if (group_.round() == round) {
        group_.Abort(now, result.status, outbox);
      }
    } else if (push) {
      staleness_sum_ += result.staleness;
      ++staleness_count_;
    }
    done(now, result.status, outbox);
  };
  const absl::Status started = client_.Start(now, std::move(operation), outbox);
  if (started.ok()) return;
  group_.Abort(now, started, outbox);
  transfer.done(now, started, outbox);
}

void ServerLink::FollowFailure(absl::Time now, Outbox& outbox) {
  if (!group_.failure().ok()) client_.FailGroup(now, group_.id(), group_.failure(), outbox);
}

double ServerLink::TakeStaleness() {
  const double mean = staleness_count_ == 0 ? 0
                                            : static_cast<double>(staleness_sum_) /
                                                  static_cast<double>(staleness_count_);
  staleness_sum_ = 0;
  staleness_count_ = 0;
  return mean;
}

}  // namespace covey::worker

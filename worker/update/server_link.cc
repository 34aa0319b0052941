// SPDX-License-Identifier: Apache-2.0
#include "worker/update/server_link.h"

#include <utility>

namespace covey::worker {

void ServerLink::Start(absl::Time now, client::Operation operation, Step step, Done done,
                       Outbox& outbox) {
  if (!group_.failure().ok()) {
    done(now, group_.failure(), outbox);
    return;
  }
  const bool push = !operation.gradient.empty();
  operation.group =
      client::GroupIdentity{.group = group_.id(), .generation = group_.generation(), .step = step};
  operation.read = {.step = step, .group = group_.id()};
  operation.done = [this, push, round = group_.round(), done](
                       absl::Time now, const client::OperationResult& result, Outbox& outbox) {
    if (!result.status.ok()) {
      if (group_.round() == round) group_.Abort(now, result.status, outbox);
    } else if (push) {
      staleness_sum_ += result.staleness;
      ++staleness_count_;
    }
    done(now, result.status, outbox);
  };
  const absl::Status started = client_.Start(now, std::move(operation), outbox);
  if (started.ok()) return;
  group_.Abort(now, started, outbox);
  done(now, started, outbox);
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

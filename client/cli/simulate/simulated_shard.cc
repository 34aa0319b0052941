// SPDX-License-Identifier: Apache-2.0
#include "client/cli/simulate/simulated_shard.h"

#include <algorithm>

#include "absl/time/time.h"
#include "common/base/check.h"
#include "proto/parameter.pb.h"

namespace covey::cli {

void SimulatedShard::SetGroups(std::vector<LiveGroup> groups) {
  groups_ = std::move(groups);
  Settle();
}

void SimulatedShard::Push(const GatePush& push, Version base) {
  // Groups have one push in flight at a time, and wait for its reply.
  COVEY_CHECK(gate_.Admit(push.group, push.step).ok());
  proto::ReadBound bound;
  bound.set_step(push.step.value());
  pending_.push_back({push.group, push.step, ReadRequirement::Of(bound, gate_.contract())});
  if (gate_.contract().Discards(base, version_)) {
    clocks_.Advance(push.group, push.step);
    listener_.discarded(push.group);
  } else {
    COVEY_CHECK(gate_.Add(push) == pushes_.size());
    pushes_.emplace_back(push, base);
  }
  Settle();
}

void SimulatedShard::Settle() {
  const GroupCensus census = {.live = groups_, .initial = groups_.size()};
  while (const auto update = gate_.TakeDue(simulator_.now(), census)) {
    for (const uint64_t number : update->pushes) {
      const auto& [push, base] = pushes_[number];
      clocks_.Advance(push.group, push.step);
      listener_.applied(push.group, version_.value() - base.value());
    }
    version_ = version_.Next();
  }
  if (const absl::Time due = gate_.NextDue(); due < settle_at_) {
    settle_at_ = due;
    simulator_.At(due, [this] {
      settle_at_ = absl::InfiniteFuture();
      Settle();
    });
  }
  const Freshness freshness = {
      .clocks = clocks_, .live_groups = groups_, .version = version_, .age = {}};
  std::vector<Pending> answers;
  const auto waiting = std::stable_partition(
      pending_.begin(), pending_.end(),
      [&](const Pending& pending) { return IsMet(pending.requirement, freshness); });
  answers.assign(pending_.begin(), waiting);
  pending_.erase(pending_.begin(), waiting);
  for (const Pending& answer : answers) {
    listener_.answered(answer.group, answer.step, version_);
  }
}

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/snapshots/loss_budget.h"

#include <algorithm>

namespace covey::scheduler {
namespace {

// Each flush multiplies the longest time so far by this, so that slow flushes are forgotten.
constexpr double kMemory = 0.9;
// A flush may take this many times as long as those before it.
constexpr double kMargin = 1.5;

}  // namespace

void LossBudget::OnLoad(NodeId server, const proto::ServerLoad& load) {
  at_risk_.OnLoad(server, load);
  Look();
}

void LossBudget::OnDeparture(NodeId server) {
  at_risk_.OnDeparture(server);
  Look();
}

absl::Time LossBudget::NextFlush(absl::Time begun) const {
  if (state_.view().has_closing() || !wants_flush_) return absl::InfiniteFuture();
  return begun + options_.flush_every - std::min(kMargin * took_, options_.flush_every);
}

void LossBudget::Tick(absl::Time now) {
  if (!wants_flush_) safe_ = std::max(safe_, now);
}

void LossBudget::Watch(absl::Time now, const Watched& snapshot) {
  if (is_behind_ || IsInTime(now, snapshot.first_cut)) return;
  is_behind_ = true;
  Transaction change(state_);
  change.Add(FlushFallsBehind{.every = options_.flush_every,
                              .updates_at_risk = at_risk_.Count(),
                              .age = at_risk_.Age(now),
                              .waits_for = snapshot.waits_for});
  change.Commit();
}

void LossBudget::OnComplete(absl::Time now, const Completed& snapshot) {
  if (snapshot.is_flush) {
    // With the time that it waited for its cut, as the next one may.
    took_ = std::max(now - std::min(snapshot.planned_cut, snapshot.cut), kMemory * took_);
  }
  if (IsInTime(now, snapshot.first_cut)) is_behind_ = false;
  safe_ = snapshot.cut;
  Look();
}

void LossBudget::FillStatus(absl::Time now, proto::StatusReply& reply) const {
  proto::AtRisk& at_risk = *reply.mutable_at_risk();
  at_risk.set_durability(state_.job().durability.Show());
  at_risk.set_snapshot(state_.record().newest_snapshot().folder());
  at_risk.set_updates(at_risk_.Count());
  at_risk.set_age_ms(static_cast<uint64_t>(absl::ToInt64Milliseconds(at_risk_.Age(now))));
  at_risk.set_flush_is_behind(is_behind_);
}

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/restarts.h"

#include <algorithm>
#include <utility>

namespace covey::cli {

Restarts::Verdict Restarts::OnEnd(const Ended& ended, const Situation& situation, absl::Time now) {
  const auto planned = planned_.find(ended.name);
  const bool is_planned = planned != planned_.end();
  const bool is_at_once = is_planned && planned->second == Planned::kAtOnce;
  if (is_planned) planned_.erase(planned);
  if (situation.is_stopping) return Verdict::kStaysAway;
  if (ended.role == Role::kWorker && situation.training_ends) return Verdict::kStaysAway;
  if (is_planned && !is_at_once) return Verdict::kComesBack;
  if (!is_planned) {
    // A scheduler that never answered would fail again at the next attempt.
    const bool is_wanted =
        ended.role == Role::kScheduler
            ? on_failure_ != RunOptions::OnFailure::kStop && situation.scheduler_answered
            : on_failure_ == RunOptions::OnFailure::kRestart && !ended.is_ok;
    if (!is_wanted || !situation.all_started) return Verdict::kStaysAway;
    if (!limit_.Allows(ended.name, ended.lived)) return Verdict::kEndsTooOften;
  }
  Add({.at = now + kDelay, .role = ended.role, .rank = ended.rank});
  return Verdict::kComesBack;
}

std::vector<Restarts::Restart> Restarts::TakeDue(
    absl::Time now, absl::FunctionRef<bool(const Restart&)> is_running) {
  std::vector<Restart> due;
  for (const Restart& restart : std::exchange(pending_, {})) {
    if (is_running(restart)) continue;
    (restart.at > now ? pending_ : due).push_back(restart);
  }
  return due;
}

absl::Time Restarts::next() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Restart& restart : pending_) next = std::min(next, restart.at);
  return next;
}

}  // namespace covey::cli

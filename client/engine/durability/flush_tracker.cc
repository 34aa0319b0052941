// SPDX-License-Identifier: Apache-2.0
#include "client/engine/durability/flush_tracker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"

namespace covey::client {

void FlushTracker::NoteLost(const absl::Status& why) {
  ++lost_count_;
  if (lost_.ok() || (absl::IsAborted(lost_) && absl::IsDataLoss(why))) lost_ = why;
}

absl::Status FlushTracker::TakeLosses() {
  if (lost_count_ == 0) return absl::OkStatus();
  const absl::Status named = std::exchange(lost_, absl::OkStatus());
  return absl::Status(named.code(), absl::StrCat(std::exchange(lost_count_, 0), " pushes ",
                                                 absl::IsAborted(named) ? "may have been" : "were",
                                                 " lost after a server had received them; one is: ",
                                                 named.message()));
}

void FlushTracker::Check(absl::Time now, absl::FunctionRef<absl::Status(const Flush&)> left,
                         Outbox& outbox) {
  if (pending_.empty()) return;
  std::vector<std::pair<Flush, absl::Status>> over;
  for (Flush& flush : std::exchange(pending_, {})) {
    absl::Status status = left(flush);
    if (!status.ok() && now < flush.deadline) {
      pending_.push_back(std::move(flush));
      continue;
    }
    if (status.ok()) status = TakeLosses();
    over.emplace_back(std::move(flush), std::move(status));
  }
  for (auto& [flush, status] : over) flush.done(now, status, outbox);
}

void FlushTracker::FailAll(absl::Time now, const absl::Status& status, Outbox& outbox) {
  for (Flush& flush : std::exchange(pending_, {})) flush.done(now, status, outbox);
}

absl::Time FlushTracker::next_deadline() const {
  absl::Time next = absl::InfiniteFuture();
  for (const Flush& flush : pending_) next = std::min(next, flush.deadline);
  return next;
}

}  // namespace covey::client

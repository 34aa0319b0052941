// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/groups/pending_tensors.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

// How late a tensor may end after its deadline.
constexpr absl::Duration kSlack = absl::Seconds(3);

}  // namespace

void PendingTensors::Begin(size_t tensor, absl::Time deadline) {
  pending_.insert(tensor);
  deadline_ = deadline;
}

void PendingTensors::End(size_t tensor) {
  if (pending_.erase(tensor) == 0) {
    violations_.Add(kGroups, absl::StrCat(member_, " was told twice of tensor ", tensor));
  }
  if (!pending_.empty()) return;
  deadline_ = absl::InfiniteFuture();
  late_since_ = absl::InfiniteFuture();
}

void PendingTensors::Check(absl::Time now, Step step) {
  if (pending_.empty() || now <= deadline_) return;
  // A process that was paused has just begun to catch up.
  late_since_ = std::min(late_since_, now);
  if (now - late_since_ <= kSlack) return;
  violations_.Add(kGroups,
                  absl::StrCat(pending_.size(), " tensors of step ", step.value(), " of ", member_,
                               " have not ended ", absl::FormatDuration(now - deadline_),
                               " after their deadline"));
  late_since_ = absl::InfiniteFuture();
  deadline_ = absl::InfiniteFuture();
}

absl::Time PendingTensors::NextWake() const {
  return std::min(deadline_, late_since_) + kSlack + absl::Milliseconds(1);
}

}  // namespace covey::sim

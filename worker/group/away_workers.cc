// SPDX-License-Identifier: Apache-2.0
#include "worker/group/away_workers.h"

#include <algorithm>
#include <utility>

namespace covey::worker {
namespace {

auto Is(NodeId node) {
  return [node](const AwayWorker& worker) { return worker.node == node; };
}

}  // namespace

void AwayWorkers::Set(absl::Time now, const std::vector<AwayWorker>& away) {
  std::vector<AwayWorker> known = away;
  for (AwayWorker& before : known_) {
    if (std::any_of(away.begin(), away.end(), Is(before.node))) continue;
    before.until = std::min(before.until, now);
    if (now - before.until <= 2 * patience_) known.push_back(std::move(before));
  }
  known_ = std::move(known);
}

absl::Time AwayWorkers::DeadlineFloor() const {
  absl::Time back = absl::InfinitePast();
  for (const AwayWorker& worker : known_) back = std::max(back, worker.until);
  return back + patience_;
}

absl::Time AwayWorkers::DeadlineFloor(const std::vector<NodeId>& workers) const {
  absl::Time back = absl::InfinitePast();
  for (const AwayWorker& worker : known_) {
    if (std::find(workers.begin(), workers.end(), worker.node) == workers.end()) continue;
    back = std::max(back, worker.until);
  }
  return back + patience_;
}

const std::string* AwayWorkers::ReasonOf(NodeId worker) const {
  const auto found = std::find_if(known_.begin(), known_.end(), Is(worker));
  return found == known_.end() ? nullptr : &found->reason;
}

}  // namespace covey::worker

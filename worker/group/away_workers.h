// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/cluster/away_worker.h"
#include "common/cluster/ids.h"

namespace covey::worker {

// The workers that this one may have to wait for and that are away, or were a moment ago, as the
// scheduler tells (HeartbeatReply.away). Says how long waits for them last: no wait is over its
// deadline until `patience` after the last of them is back, since its program then has to do what
// the others have done already.
//
// Actor-confined. Deterministic. Holds at most kAwayToldMax + 1 workers that are away, and those
// that came back within twice the patience.
class AwayWorkers {
 public:
  explicit AwayWorkers(absl::Duration patience) : patience_(patience) {}

  // These are away; all others are back.
  void Set(absl::Time now, const std::vector<AwayWorker>& away);

  // InfinitePast(): deadlines hold as they are.
  absl::Time DeadlineFloor() const;
  // The same for waits for these workers only.
  absl::Time DeadlineFloor(const std::vector<NodeId>& workers) const;
  // Null: it was not away.
  const std::string* ReasonOf(NodeId worker) const;

 private:
  const absl::Duration patience_;
  std::vector<AwayWorker> known_;  // `until`: of those that are back, when this was heard
};

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <set>

#include "absl/time/time.h"
#include "common/cluster/view.h"
#include "tests/sim/cluster/sim_cluster.h"

namespace covey::sim {

// Says when groups may take their last steps, which must succeed: after the fault phase, once every
// death has been noticed and every live group has finished its ordinary steps. SetCluster comes
// first; the cluster outlives it.
class LastSteps {
 public:
  void SetCluster(const SimCluster& cluster) { cluster_ = &cluster; }

  // Whether the cluster was healed long enough ago that every death is in the view.
  bool EveryDeathIsNoticed() const {
    return cluster_->healed() && cluster_->simulator().now() - cluster_->healed_at() > kDeathsTake;
  }

  // `group` has finished its ordinary steps. Once this returns true, it does for all groups.
  bool MayBegin(GroupId group, const ClusterView& view) {
    if (begun_) return true;
    waiting_.insert(group);
    if (!EveryDeathIsNoticed()) return false;
    for (const LiveGroup& live : view.live_groups()) {
      if (waiting_.count(live.id) == 0) return false;
    }
    begun_ = true;
    return true;
  }

  size_t workers_running() const {
    size_t running = 0;
    for (const auto& process : cluster_->processes()) {
      if (process->name().rfind("worker-", 0) == 0 && process->running()) ++running;
    }
    return running;
  }

 private:
  static constexpr absl::Duration kDeathsTake = absl::Seconds(60);

  const SimCluster* cluster_ = nullptr;
  std::set<GroupId> waiting_;
  bool begun_ = false;
};

}  // namespace covey::sim

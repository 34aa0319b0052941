// SPDX-License-Identifier: Apache-2.0
#include "scheduler/groups/worker_placement.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "common/cluster/limits.h"
#include "common/cluster/topology.h"

namespace covey::scheduler {
namespace {

// Narrowest domain that a worker shares with some member.
Level Distance(const std::string& labels, const OpenGroup& group) {
  const TopologyPath path = ParseTopologyPath(labels);
  Level nearest = Level::kCluster;
  for (const std::string& member : group.labels) {
    nearest = std::min(nearest, CommonLevel(path, ParseTopologyPath(member)));
  }
  return nearest;
}

void Add(const LateWorker& late, OpenGroup& group, Placement& placement) {
  placement.additions[group.id].push_back(late.worker.node);
  group.labels.push_back(late.worker.labels);
}

// Gives each worker to the group with the lowest `rank`; a null choice leaves the worker out.
template <typename Choose>
void Distribute(std::vector<LateWorker>& late, Placement& placement, const Choose& choose) {
  std::vector<LateWorker> left;
  for (LateWorker& worker : late) {
    if (OpenGroup* group = choose(worker); group != nullptr) {
      Add(worker, *group, placement);
    } else {
      left.push_back(std::move(worker));
    }
  }
  late = std::move(left);
}

}  // namespace

Placement PlaceLateWorkers(const PlacementRules& rules, std::vector<OpenGroup> groups,
                           std::vector<LateWorker> late) {
  Placement placement;
  Distribute(late, placement, [&](const LateWorker& worker) {
    OpenGroup* best = nullptr;
    std::tuple<Level, size_t, GroupId> best_rank;
    for (OpenGroup& group : groups) {
      if (group.labels.size() >= rules.group_members) continue;
      const std::tuple rank(Distance(worker.worker.labels, group), group.labels.size(), group.id);
      if (best == nullptr || rank < best_rank) std::tie(best, best_rank) = std::pair(&group, rank);
    }
    return best;
  });

  if (rules.may_make_groups && late.size() >= rules.group_members) {
    const size_t count = late.size() / rules.group_members;
    const auto end = late.begin() + static_cast<ptrdiff_t>(count * rules.group_members);
    std::vector<PlannedWorker> planned;
    for (auto at = late.begin(); at != end; ++at) planned.push_back(at->worker);
    placement.new_groups = PlanGroups(std::move(planned), count);
    late.erase(late.begin(), end);
  }

  Distribute(late, placement, [&](const LateWorker& worker) {
    OpenGroup* best = nullptr;
    std::tuple<size_t, Level, GroupId> best_rank;
    for (OpenGroup& group : groups) {
      if (!worker.has_waited || group.labels.size() >= kGroupMembersMax) continue;
      const std::tuple rank(group.labels.size(), Distance(worker.worker.labels, group), group.id);
      if (best == nullptr || rank < best_rank) std::tie(best, best_rank) = std::pair(&group, rank);
    }
    return best;
  });
  return placement;
}

}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "client/cli/simulate/simulated_group.h"
#include "common/grouping/stragglers/group_in_force.h"
#include "common/grouping/stragglers/straggler_action.h"
#include "common/grouping/stragglers/straggler_ladder.h"
#include "common/simulation/simulator.h"

namespace covey::cli {

// The scheduler's part in a simulated cluster: nodes report to it about once a second, as workers
// do, the real ladder decides, and groups follow its decisions. Decisions arrive at once.
//
// Actor-confined; outlives the simulator's events. Deterministic.
class LadderDriver {
 public:
  struct World {
    const ClusterOptions& options;
    Simulator& simulator;
    std::vector<NodeState>& nodes;
    std::vector<std::unique_ptr<SimulatedGroup>>& groups;
    std::function<std::shared_ptr<const Membership>(std::vector<uint32_t> nodes)> make;
  };
  using Decisions = std::vector<std::pair<absl::Duration, std::string>>;

  // Appends decisions to `decisions`, which outlives it.
  LadderDriver(World world, Decisions& decisions);

  void OnComputed(uint32_t node, absl::Duration compute, double samples);
  // A node has finished its last step in the group that it was removed from.
  void OnLeft(uint32_t node);

 private:
  // A node's counts since its last report.
  struct Interval {
    absl::Time begun = absl::UnixEpoch();
    uint64_t steps = 0;
    uint64_t all_steps = 0;
    double compute_seconds = 0;
    double slowest_seconds = 0;
    double samples = 0;
  };

  void Carry(const StragglerAction& action);
  void Shift(GroupInForce& in_force, const std::vector<uint32_t>& shares);
  void Move(NodeId member, GroupId to);
  void EndProbation();
  SimulatedGroup& Group(GroupId id) { return *world_.groups[id.value() - 1]; }

  const World world_;
  Decisions& decisions_;
  StragglerLadder ladder_;
  std::vector<Interval> intervals_;
  std::vector<GroupId> planned_;  // per node; 0 = in none
  std::vector<GroupInForce> groups_;
  std::vector<GroupMember> evicted_;
  // Nodes that are moving to another group; 0 = to none.
  std::map<uint32_t, GroupId> moving_;
};

}  // namespace covey::cli

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/simulate/cluster_options.h"

namespace covey::cli {

// How the nodes spend their time; fractions of the whole.
struct TimeShares {
  double compute = 0;
  // Waiting for members of the group that compute longer.
  double members = 0;
  // Collectives of the group.
  double collectives = 0;
  // Waiting for the servers: transfers in both directions, and the contract's conditions.
  double servers = 0;
};

// The result for one number of groups.
struct ClusterResult {
  uint32_t groups = 0;
  // Of the first group; the other groups have as many members, or one less.
  uint32_t members = 0;
  Algorithm algorithm = Algorithm::kRing;
  bool messages = false;

  absl::Duration elapsed;
  // The mean over the groups; and the value of each.
  double steps_per_second = 0;
  std::vector<double> group_steps_per_second;
  double samples_per_second = 0;
  // Samples relative to those of the same nodes if they computed all the time, without noise.
  double efficiency = 0;
  TimeShares shares;

  // The updates by others between the values that a push was computed on and its application. The
  // histogram counts pushes; its last bin includes all higher values.
  double staleness_mean = 0;
  uint64_t staleness_max = 0;
  std::vector<uint64_t> staleness;
  uint64_t discarded = 0;
  // Gradients that groups continued without.
  uint64_t steps_aside = 0;

  // Per rack, both directions, and the mean of them per step of a group.
  std::vector<double> uplink_bytes;
  double uplink_bytes_per_step = 0;

  // Samples per second over time.
  std::vector<std::pair<double, double>> throughput;
  // The decisions of planner and ladder, with their times.
  std::vector<std::pair<absl::Duration, std::string>> decisions;
  // Kept only to compare runs.
  uint64_t digest = 0;
};

// Called repeatedly with the completed fraction, from 0 to 1.
using SimulationProgress = std::function<void(double part)>;

// Runs the cluster in virtual time, cut into `groups` groups; 0 = as many as the planner chooses.
// Planner, contracts, gates, trees and straggler ladder are those of the real roles. Preconditions:
// the options are valid, there are as many nodes as groups, and one group when there are no
// servers.
//
// Pure: the same options give the same result. O(nodes * steps), or O(messages) when these are
// simulated.
ClusterResult SimulateCluster(const ClusterOptions& options, uint32_t groups,
                              const SimulationProgress& progress = nullptr);

}  // namespace covey::cli

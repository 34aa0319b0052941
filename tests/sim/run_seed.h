// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/planted_bug.h"
#include "common/faults/fault.h"

namespace covey::sim {

struct SeedOptions {
  uint64_t seed = 1;
  // See workloads/workload_names.h.
  std::string workload;
  // Planted while the seed runs, and removed afterwards.
  PlantedBug planted_bug = PlantedBug::kNone;
  // Flips bits in messages between members of a group and in pushes of clients, see SimNetwork.
  bool bent_slices = false;
  // Replaces the drawn faults.
  std::optional<FaultPlan> faults;
  // Only draws the faults; does not run the cluster.
  bool draw_only = false;
  // Receives every line of the history; null = no trace.
  std::function<void(absl::Time, const std::string&)> trace;
};

struct SeedResult {
  // Empty: no invariant was violated, and the work finished in time.
  std::vector<std::string> violations;
  uint64_t digest = 0;
  uint64_t events = 0;
  // How often each named rare event happened.
  std::map<std::string, uint64_t> counts;
  // The drawn configuration, and a summary of the work done.
  std::string configuration;
  FaultPlan faults;
  std::string report;
};

// One simulated cluster from start to end: safety phase with faults, then liveness phase without.
// Pure: the same options give the same result.
SeedResult RunSeed(const SeedOptions& options);

// Name of the planted bug that is in the network itself, see SeedOptions::bent_slices.
inline constexpr absl::string_view kBentSlice = "bent-slice";

// The command that replays it with its trace.
std::string ReplayCommand(const SeedOptions& options);

}  // namespace covey::sim

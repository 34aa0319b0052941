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
  // kCounting, kStaleness or kGroups, see workloads/workload.h.
  std::string workload;
  // In force while the seed runs; none is when it has ended.
  PlantedBug planted_bug = PlantedBug::kNone;
  // Plants flipped bits in what members of a group send each other and clients push, see
  // SimNetwork.
  bool bent_slices = false;
  // In place of those that are drawn.
  std::optional<FaultPlan> faults;
  // The faults are drawn, and nothing else happens.
  bool draw_only = false;
  // Given every line of the history; null = none are made.
  std::function<void(absl::Time, const std::string&)> trace;
};

struct SeedResult {
  // Empty: no invariant was violated, and the work was finished in time.
  std::vector<std::string> violations;
  uint64_t digest = 0;
  uint64_t events = 0;
  // How often each named rare event happened.
  std::map<std::string, uint64_t> counts;
  // What was drawn, and what was done.
  std::string configuration;
  FaultPlan faults;
  std::string report;
};

// One simulated cluster from start to end: safety phase with faults, then liveness phase without.
// Pure: the same options give the same result.
SeedResult RunSeed(const SeedOptions& options);

// Name of the planted bug that is the network's own, see SeedOptions::bent_slices.
inline constexpr absl::string_view kBentSlice = "bent-slice";

// The command that replays it with its trace.
std::string ReplayCommand(const SeedOptions& options);

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/run_seed.h"

namespace covey::sim {

struct FleetOptions {
  uint64_t first_seed = 1;
  uint64_t seeds = 1;
  std::vector<std::string> workloads;
  PlantedBug planted_bug = PlantedBug::kNone;
  bool bent_slices = false;
  // Processes that share the seeds.
  uint32_t jobs = 1;
  // Each seed divisible by this number is run twice, and the histories are compared. 0 = none.
  uint64_t repeat_every = 16;
};

struct FleetResult {
  uint64_t runs = 0;
  uint64_t events = 0;
  uint64_t repeated = 0;
  // Replay command and violations, in order of seed and workload.
  std::map<std::pair<uint64_t, std::string>, std::vector<std::string>> violations;
  std::map<std::string, uint64_t> counts;
};

// Runs many seeds in parallel processes. A crash of a process is a violation of the seed that it
// ran. `progress` is called periodically with the numbers of finished runs and of runs with
// violations.
FleetResult RunFleet(const FleetOptions& options,
                     const std::function<void(uint64_t runs, uint64_t bad)>& progress);

}  // namespace covey::sim

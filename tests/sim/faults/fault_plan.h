// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/faults/fault.h"

namespace covey::sim {

// The processes that faults can hit. A value.
struct FaultTargets {
  // All processes, by name; the first is the scheduler.
  std::vector<std::string> names;
  // The first `hubs` processes are those that the others talk to: a fault between two processes has
  // a hub on one side.
  size_t hubs = 1;
  // Servers that may be declared dead while a fault lasts, and the scheduler's time-out for them.
  std::vector<std::string> servers;
  absl::Duration patience;
  uint64_t data_loops = 1;  // of each server
  // Servers that may be killed forever, and the most of them that are.
  std::vector<std::string> mortal_servers;
  size_t server_deaths_max = 0;
  std::vector<std::string> mortal_workers;
  size_t worker_deaths_max = 0;
};

// Draws all faults of a run before it starts: within `safety`, in order of time. Each kind is tried
// in only a share of the runs, so that a fault is also met without the noise of the others. A
// zombie is a server that the scheduler does not hear; its messages to other processes still arrive
// after another server has replaced it, and some of its users do not learn of the replacement.
// Permanent deaths have no duration; every other fault ends by itself.
FaultPlan DrawFaults(Random random, const FaultTargets& targets, absl::Duration safety);

}  // namespace covey::sim

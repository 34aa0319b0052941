// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/faults/fault.h"

namespace covey::sim {

// Who can be hit. A value.
struct FaultTargets {
  // All processes, by name; the first is the scheduler.
  std::vector<std::string> names;
  // So many of them, from the first on, are those that the others talk to: a fault between two has
  // one of them on a side.
  size_t hubs = 1;
  // Who may be taken for dead while it goes on; and how long the scheduler waits for a word of it.
  std::vector<std::string> servers;
  absl::Duration patience;
  // Who may be killed for ever: of these so many at most.
  std::vector<std::string> mortal_servers;
  size_t server_deaths_max = 0;
  std::vector<std::string> mortal_workers;
  size_t worker_deaths_max = 0;
};

// All faults of a run, drawn before it starts, during `safety`, in order of time. Each kind is
// tried in a share of the runs only, so that one fault can be met without the noise of the others.
// A zombie is a server that the scheduler does not hear, while what it sends to the others arrives
// once another one has its place; and some of those that use it hear nothing of that. Without a
// duration are those deaths that are for ever; whatever else lasts ends by itself.
FaultPlan DrawFaults(Random random, const FaultTargets& targets, absl::Duration safety);

}  // namespace covey::sim

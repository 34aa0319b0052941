// SPDX-License-Identifier: Apache-2.0
#include "common/base/planted_bug_switch.h"

#include <atomic>
#include <cstdlib>

#include "common/base/check.h"

namespace covey {
namespace {

PlantedBug FromEnvironment() {
  const char* name = std::getenv("COVEY_PLANTED_BUG");
  if (name == nullptr || absl::string_view(name) == "none") return PlantedBug::kNone;
  const PlantedBug bug = PlantedBugOfName(name);
  COVEY_CHECK(bug != PlantedBug::kNone);
  return bug;
}

std::atomic<PlantedBug>& InForce() {
  static std::atomic<PlantedBug> in_force{FromEnvironment()};
  return in_force;
}

}  // namespace

void PlantBug(PlantedBug bug) { InForce() = bug; }

PlantedBug PlantedBugOfName(absl::string_view name) {
  for (const PlantedBug bug : AllPlantedBugs()) {
    if (name == PlantedBugName(bug)) return bug;
  }
  return PlantedBug::kNone;
}

PlantedBug PlantedBugInForce() { return InForce().load(std::memory_order_relaxed); }

}  // namespace covey

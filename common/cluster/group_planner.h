#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/cluster/ids.h"

namespace covey {

struct PlannedWorker {
  NodeId node;
  uint32_t rank = 0;
  // zone/rack/host/device; missing parts count as empty.
  std::string labels;
};

// Cuts workers into `groups` groups whose sizes differ by at most one, each listed in ring order:
// neighbours in the topology are neighbours in the ring. Fills whole groups inside a host first,
// then from what is left inside a rack, then inside a zone, so that as few groups as possible cross
// a border. Without labels: by rank.
//
// Pure; independent of the order of `workers`. Groups are in the order of the lowest rank in them.
// No more groups than workers are made.
std::vector<std::vector<NodeId>> PlanGroups(std::vector<PlannedWorker> workers, size_t groups);

}  // namespace covey

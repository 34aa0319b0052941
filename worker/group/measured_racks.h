// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/cluster/topology.h"
#include "common/grouping/latency_clusters.h"

namespace covey::worker {

// Racks from distances, for groups whose labels name neither racks nor zones. Pure: members with
// the same paths and distances find the same.

// Fewer members have no two racks of several; more would measure for too long.
inline constexpr size_t kMeasuredRacksFrom = 4;
inline constexpr size_t kMeasuredRacksTo = 32;
// How many times farther the next rack is than members of one's own. More than kClusterGap, because
// a few round trips at the start of busy processes say less than a survey does.
inline constexpr double kMeasuredRackGap = 3.0;

// Whether distances are worth measuring: a number of members within these limits, no name of a rack
// or zone, and not all on one known host.
bool RacksAreToBeMeasured(std::span<const TopologyPath> paths);

// Names the racks "measured-0", "measured-1", ... in the order of their first members; returns how
// many there are. 0: the paths stay as they are, because
//   - a distance is not known in either direction;
//   - there is no gap (LatencyClusters);
//   - fewer than two racks have several hosts each: what is far alone may only be slow, and what
//     the hosts' names say already needs no other name;
//   - members of one host would be in different racks.
// A member whose host is not known counts as a host. Preconditions: as many nodes as paths.
size_t NameMeasuredRacks(const DistanceMatrix& distances, std::vector<TopologyPath>& paths);

}  // namespace covey::worker

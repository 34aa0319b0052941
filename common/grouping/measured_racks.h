// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "common/cluster/topology.h"
#include "common/grouping/latency_clusters.h"

namespace covey {

// Racks from distances, for nodes whose labels do not say in which rack they are. Pure: the same
// paths and distances give the same racks.

// Fewer nodes have no two racks of several; the members of a larger group would measure for too
// long.
inline constexpr size_t kMeasuredRacksFrom = 4;
inline constexpr size_t kMeasuredRacksTo = 32;
// How many times farther the next rack is than nodes of one's own. More than kClusterGap, because a
// few round trips at the start of busy processes say less than a long measurement does.
inline constexpr double kMeasuredRackGap = 3.0;
// Of so many others each node has to know the distance, or of all others where these are fewer.
inline constexpr size_t kMeasuredDistancesMin = 8;

// Whether a group's distances are worth measuring: a number of members within these limits, no name
// of a rack or zone, and not all on one known host.
bool RacksAreToBeMeasured(std::span<const TopologyPath> paths);

// The rack of each node, by number. Empty: nodes have no racks that can be believed, because
//   - too few distances are known (kMeasuredDistancesMin), or they do not connect all nodes;
//   - there is no gap (LatencyClusters);
//   - fewer than two racks have several hosts each: what is far alone may only be slow, and what
//     the hosts' names say already needs no other name;
//   - nodes of one host would be in different racks.
// A node whose host is not known counts as a host. Preconditions: as many nodes as paths, at least
// one.
Clustering MeasuredRacks(const DistanceMatrix& distances, std::span<const TopologyPath> paths);

// "measured-0" for rack 0.
std::string MeasuredRackName(uint32_t rack);

// Names the MeasuredRacks in `paths`; returns how many there are. 0: the paths stay as they are.
size_t NameMeasuredRacks(const DistanceMatrix& distances, std::vector<TopologyPath>& paths);

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace covey {

// Distances that members have measured between each other: the shortest of several round trips, or
// seconds per byte. Any unit, if it is the same for all.
class DistanceMatrix {
 public:
  explicit DistanceMatrix(size_t nodes) : nodes_(nodes), distances_(nodes * nodes, 0) {}

  size_t nodes() const { return nodes_; }
  // The distance from `from` to `to`, as `from` measured it; unknown when it is not positive or not
  // finite.
  void Set(size_t from, size_t to, double distance) { distances_[from * nodes_ + to] = distance; }
  // The shorter of both directions, since noise only adds; 0 when neither is known.
  double At(size_t a, size_t b) const;

 private:
  size_t nodes_;
  std::vector<double> distances_;
};

// One way to cut nodes into clusters: a cluster number per node, from 0 in the order of the first
// node of each.
using Clustering = std::vector<uint32_t>;

// Cuts nodes into clusters at the gaps between kinds of links: hosts, racks, zones. The finest
// clustering comes first; the last one gives racks when only two kinds of links are to be
// distinguished. Empty when all nodes are one cluster, without a gap to cut at.
//
// The rule. (1) A node that is slow towards all others is measured by its own scale. Its slowness
// is how many times its nearest distance and its upper quartile exceed those of the median node,
// whichever is less; it counts only if its farthest distance is at least `gap` times its nearest,
// so that near and far can be told apart. The distance of two nodes is divided by the larger
// slowness. (2) Average linkage of the logarithms: the two nearest clusters merge until one is
// left, their distance being the mean over all known pairs, so that no single measurement decides.
// (3) The heights of the merges, in growing order, are cut wherever one is at least `gap` times its
// predecessor: the merges below a cut are a clustering.
//
// So a node that is equally far from all others is a cluster by itself, and so is a node without
// measurements. With two nodes, or when every node would be by itself, there is nothing to compare:
// one cluster.
//
// Pure; cluster numbers aside, independent of the order of nodes unless distances tie. O(n^3) at
// worst, O(n^2) on typical networks; meant for the members of one group. Precondition: gap > 1.
inline constexpr double kClusterGap = 2.0;
std::vector<Clustering> LatencyClusters(const DistanceMatrix& matrix, double gap = kClusterGap);

}  // namespace covey

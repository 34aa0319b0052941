// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace covey {

// What members have measured of each other: how far apart two nodes are, as the shortest of several
// round trips, or as seconds per byte. Any unit, as long as it is one.
class DistanceMatrix {
 public:
  explicit DistanceMatrix(size_t nodes) : nodes_(nodes), distances_(nodes * nodes, 0) {}

  size_t nodes() const { return nodes_; }
  // What `from` measured of `to`; not positive, or not finite, = unknown.
  void Set(size_t from, size_t to, double distance) { distances_[from * nodes_ + to] = distance; }
  // The shorter of both directions, for noise only ever adds; 0 when neither is known.
  double At(size_t a, size_t b) const;

 private:
  size_t nodes_;
  std::vector<double> distances_;
};

// One way to cut nodes into clusters: a cluster number per node, from 0 in the order of the first
// node of each.
using Clustering = std::vector<uint32_t>;

// Clusters that are as far apart as the next wider kind of link is slower: hosts, racks, zones.
// Finest first; the last one is the one to call racks when only two kinds of link are wanted. Empty
// when all nodes are one cluster, with no gap to cut at.
//
// The rule. (1) A node that is slow towards everybody is measured by its own scale: where its
// farthest is `gap` times its nearest or more, so that it sees near and far, its slowness is how
// many times its nearest and its upper quartile exceed those of the median node, the smaller of
// both. The distance of two nodes is divided by the larger slowness. (2) Average linkage of the
// logarithms: the two nearest clusters merge until one is left, their distance being the mean over
// all known pairs, so that no single measurement decides. (3) The heights of the merges, in growing
// order, are cut wherever the next is `gap` times the one before or more: the merges below a cut
// are a clustering.
//
// So a node that is equally far from everybody stands alone, and so does one that nobody could
// measure. With two nodes, or with every node on its own, there is nothing to compare: one cluster.
//
// Pure; cluster numbers aside, independent of the order of nodes unless distances tie.
// O(n^3) at worst, O(n^2) for what networks look like; meant for the members of one group.
// Precondition: gap > 1.
inline constexpr double kClusterGap = 2.0;
std::vector<Clustering> LatencyClusters(const DistanceMatrix& matrix, double gap = kClusterGap);

}  // namespace covey

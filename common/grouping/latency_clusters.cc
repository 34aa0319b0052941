// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/latency_clusters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/check.h"

namespace covey {
namespace {

constexpr double kUnknown = std::numeric_limits<double>::infinity();

bool IsKnown(double distance) { return std::isfinite(distance) && distance > 0; }

// The measurements of one node, in growing order.
struct Row {
  std::vector<double> distances;

  double nearest() const { return distances.front(); }
  // The upper quartile, which a single slow peer does not change.
  double far() const { return distances[(distances.size() - 1) * 3 / 4]; }
  // True when the node has links of different kinds.
  bool SeesNearAndFar(double gap) const { return distances.back() >= gap * distances.front(); }
};

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 1 : values[(values.size() - 1) / 2];
}

// How many times farther from all others each node is than the typical node; at least 1.
std::vector<double> Slowness(const DistanceMatrix& matrix, double gap) {
  std::vector<Row> rows(matrix.nodes());
  std::vector<double> nearest, far;
  for (size_t node = 0; node < rows.size(); ++node) {
    Row& row = rows[node];
    for (size_t other = 0; other < rows.size(); ++other) {
      const double distance = other == node ? 0 : matrix.At(node, other);
      if (distance > 0) row.distances.push_back(distance);
    }
    if (row.distances.empty()) continue;
    std::sort(row.distances.begin(), row.distances.end());
    nearest.push_back(row.nearest());
    far.push_back(row.far());
  }
  const double typical_nearest = Median(nearest);
  const double typical_far = Median(far);
  std::vector<double> slowness;
  for (const Row& row : rows) {
    slowness.push_back(
        !row.distances.empty() && row.SeesNearAndFar(gap)
            ? std::max(1.0, std::min(row.nearest() / typical_nearest, row.far() / typical_far))
            : 1);
  }
  return slowness;
}

// Agglomerative average linkage. A cluster is named by its lowest node.
class Linkage {
 public:
  struct Merge {
    double height;
    size_t into, from;
  };

  Linkage(const DistanceMatrix& matrix, const std::vector<double>& slowness)
      : nodes_(matrix.nodes()),
        sums_(nodes_ * nodes_, 0),
        counts_(nodes_ * nodes_, 0),
        alive_(nodes_, true),
        nearest_(nodes_) {
    for (size_t a = 0; a < nodes_; ++a) {
      for (size_t b = 0; b < nodes_; ++b) {
        if (a == b || !(matrix.At(a, b) > 0)) continue;
        sums_[a * nodes_ + b] = std::log(matrix.At(a, b) / std::max(slowness[a], slowness[b]));
        counts_[a * nodes_ + b] = 1;
      }
    }
    for (size_t a = 0; a < nodes_; ++a) FindNearest(a);
  }

  // Clusters that share no known pair stay apart.
  std::vector<Merge> MergeAll() {
    std::vector<Merge> merges;
    for (size_t into = Closest(); into < nodes_; into = Closest()) {
      const size_t from = nearest_[into];
      merges.push_back({Distance(into, from), into, from});
      Join(into, from);
    }
    return merges;
  }

 private:
  double Distance(size_t a, size_t b) const {
    const double count = counts_[a * nodes_ + b];
    return count > 0 ? sums_[a * nodes_ + b] / count : kUnknown;
  }

  // Examines later clusters only, so that each pair is examined once.
  void FindNearest(size_t a) {
    nearest_[a] = a;
    double distance = kUnknown;
    for (size_t b = a + 1; b < nodes_; ++b) {
      if (!alive_[b] || Distance(a, b) >= distance) continue;
      distance = Distance(a, b);
      nearest_[a] = b;
    }
  }

  // The first cluster of the closest pair; nodes_ when there is no pair.
  size_t Closest() const {
    size_t closest = nodes_;
    double distance = kUnknown;
    for (size_t a = 0; a < nodes_; ++a) {
      if (!alive_[a] || nearest_[a] == a || Distance(a, nearest_[a]) >= distance) continue;
      distance = Distance(a, nearest_[a]);
      closest = a;
    }
    return closest;
  }

  void Join(size_t into, size_t from) {
    alive_[from] = false;
    for (size_t other = 0; other < nodes_; ++other) {
      if (!alive_[other] || other == into) continue;
      for (auto* values : {&sums_, &counts_}) {
        (*values)[into * nodes_ + other] += (*values)[from * nodes_ + other];
        (*values)[other * nodes_ + into] = (*values)[into * nodes_ + other];
      }
    }
    FindNearest(into);
    for (size_t a = 0; a < from; ++a) {
      if (!alive_[a] || a == into) continue;
      const bool lost_its_nearest = nearest_[a] == into || nearest_[a] == from;
      if (lost_its_nearest || (a < into && Distance(a, into) < Distance(a, nearest_[a]))) {
        FindNearest(a);
      }
    }
  }

  const size_t nodes_;
  // Sum of the logarithms, and number, of the known distances between two clusters.
  std::vector<double> sums_;
  std::vector<double> counts_;
  std::vector<bool> alive_;
  std::vector<size_t> nearest_;  // itself = none
};

// The clusters after the first merges.
Clustering ClustersAfter(size_t nodes, const std::vector<Linkage::Merge>& merges, size_t count) {
  std::vector<size_t> into(nodes);
  std::iota(into.begin(), into.end(), size_t{0});
  for (size_t i = 0; i < count; ++i) into[merges[i].from] = merges[i].into;
  Clustering clusters(nodes);
  uint32_t next = 0;
  for (size_t node = 0; node < nodes; ++node) {
    // A cluster is named by its lowest node, which has a number by now.
    clusters[node] = into[node] == node ? next++ : clusters[into[node]];
  }
  return clusters;
}

}  // namespace

double DistanceMatrix::At(size_t a, size_t b) const {
  const double there = distances_[a * nodes_ + b];
  const double back = distances_[b * nodes_ + a];
  if (!IsKnown(there)) return IsKnown(back) ? back : 0;
  return IsKnown(back) ? std::min(there, back) : there;
}

std::vector<Clustering> LatencyClusters(const DistanceMatrix& matrix, double gap) {
  COVEY_CHECK(gap > 1);
  const size_t nodes = matrix.nodes();
  std::vector<Linkage::Merge> merges = Linkage(matrix, Slowness(matrix, gap)).MergeAll();
  // Heights of average linkage never decrease, except in the last bits of a sum.
  std::stable_sort(merges.begin(), merges.end(),
                   [](const auto& a, const auto& b) { return a.height < b.height; });
  std::vector<Clustering> clusterings;
  for (size_t i = 1; i < merges.size(); ++i) {
    if (merges[i].height - merges[i - 1].height < std::log(gap)) continue;
    clusterings.push_back(ClustersAfter(nodes, merges, i));
  }
  // Nodes that no measurement connects.
  if (merges.size() + 1 < nodes) clusterings.push_back(ClustersAfter(nodes, merges, merges.size()));
  return clusterings;
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/latency_clusters.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "common/base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr double kUnknown = std::numeric_limits<double>::quiet_NaN();

// exp(sigma z), with z approximately normal (Irwin-Hall).
double Noise(Random& random, double sigma) {
  double z = -6;
  for (int i = 0; i < 12; ++i) z += random.Uniform();
  return std::exp(sigma * z);
}

// Adjusted Rand index (Hubert and Arabie 1985): 1 = the same clustering, about 0 = unrelated.
double AdjustedRandIndex(const Clustering& a, const Clustering& b) {
  const auto pairs = [](double n) { return n * (n - 1) / 2; };
  std::map<std::pair<uint32_t, uint32_t>, int> both;
  std::map<uint32_t, int> in_a, in_b;
  for (size_t i = 0; i < a.size(); ++i) {
    ++both[{a[i], b[i]}];
    ++in_a[a[i]];
    ++in_b[b[i]];
  }
  double together = 0, pairs_a = 0, pairs_b = 0;
  for (const auto& [key, count] : both) together += pairs(count);
  for (const auto& [key, count] : in_a) pairs_a += pairs(count);
  for (const auto& [key, count] : in_b) pairs_b += pairs(count);
  const double expected = pairs_a * pairs_b / std::max(1.0, pairs(static_cast<double>(a.size())));
  const double most = (pairs_a + pairs_b) / 2;
  return most == expected ? 1 : (together - expected) / (most - expected);
}

struct Cluster {
  Clustering racks;
  std::vector<double> slowness;
};

// Racks of at least `smallest` nodes, members shuffled.
Cluster ShuffledRacks(Random& random, size_t nodes, size_t racks, size_t smallest) {
  Cluster cluster{.racks = {}, .slowness = std::vector<double>(nodes, 1)};
  for (size_t i = 0; i < nodes; ++i) {
    cluster.racks.push_back(static_cast<uint32_t>(
        i < smallest * racks ? i / smallest : random.Below(std::max<size_t>(racks, 1))));
  }
  for (size_t i = nodes; i > 1; --i) {
    std::swap(cluster.racks[i - 1], cluster.racks[random.Below(i)]);
  }
  return cluster;
}

DistanceMatrix Measure(Random& random, const Cluster& cluster, double gap, double sigma) {
  const size_t nodes = cluster.racks.size();
  DistanceMatrix matrix(nodes);
  for (size_t i = 0; i < nodes; ++i) {
    for (size_t j = 0; j < nodes; ++j) {
      const double base = cluster.racks[i] == cluster.racks[j] ? 50e-6 : gap * 50e-6;
      matrix.Set(i, j,
                 base * std::max(cluster.slowness[i], cluster.slowness[j]) * Noise(random, sigma));
    }
  }
  return matrix;
}

// The coarsest clustering, or a single cluster.
Clustering Racks(const DistanceMatrix& matrix) {
  const std::vector<Clustering> clusterings = LatencyClusters(matrix);
  return clusterings.empty() ? Clustering(matrix.nodes(), 0) : clusterings.back();
}

TEST(LatencyClustersTest, RecoversRacksFromNoisyMeasurements) {
  Random random(1);
  for (size_t nodes = 4; nodes <= 64; ++nodes) {
    for (int round = 0; round < 4; ++round) {
      const size_t racks = 2 + random.Below(std::min<size_t>(nodes / 2, 9) - 1);
      const Cluster cluster = ShuffledRacks(random, nodes, racks, 2);
      const std::vector<Clustering> found =
          LatencyClusters(Measure(random, cluster, /*gap=*/4, /*sigma=*/0.15));
      ASSERT_EQ(found.size(), 1u) << nodes << " nodes in " << racks << " racks";
      EXPECT_EQ(AdjustedRandIndex(found[0], cluster.racks), 1.0) << nodes << " nodes";
    }
  }
}

TEST(LatencyClustersTest, IsOneClusterWithoutAGap) {
  Random random(2);
  for (size_t nodes = 0; nodes <= 64; ++nodes) {
    const Cluster cluster{.racks = Clustering(nodes, 0), .slowness = std::vector<double>(nodes, 1)};
    EXPECT_THAT(LatencyClusters(Measure(random, cluster, 1, /*sigma=*/0.15)), IsEmpty()) << nodes;
  }
}

TEST(LatencyClustersTest, KeepsSlowNodesInTheirRack) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const size_t nodes = 12 + random.Below(53);
    Cluster cluster = ShuffledRacks(random, nodes, 2 + random.Below(3), 4);
    for (size_t slow = 0; slow < nodes / 10; ++slow) {
      cluster.slowness[random.Below(nodes)] = 1.5 + 2 * random.Uniform();
    }
    const Clustering racks = Racks(Measure(random, cluster, 4, 0.1));
    EXPECT_EQ(AdjustedRandIndex(racks, cluster.racks), 1.0) << nodes << " nodes";
  }
}

TEST(LatencyClustersTest, SurvivesMissingAndWildEntries) {
  Random random(4);
  for (int round = 0; round < 200; ++round) {
    const size_t nodes = 24 + random.Below(41);
    const Cluster cluster = ShuffledRacks(random, nodes, 2 + random.Below(2), 8);
    DistanceMatrix matrix = Measure(random, cluster, 4, 0.15);
    for (size_t i = 0; i < nodes; ++i) {
      for (size_t j = 0; j < nodes; ++j) {
        if (random.Chance(0.01)) matrix.Set(i, j, 10 * matrix.At(i, j));
        if (random.Chance(0.3)) matrix.Set(i, j, kUnknown);
      }
    }
    EXPECT_EQ(AdjustedRandIndex(Racks(matrix), cluster.racks), 1.0) << nodes << " nodes";
  }
}

TEST(LatencyClustersTest, TakesTheShorterOfBothDirections) {
  DistanceMatrix matrix(2);
  matrix.Set(0, 1, 3);
  EXPECT_EQ(matrix.At(1, 0), 3);
  matrix.Set(1, 0, 2);
  EXPECT_EQ(matrix.At(0, 1), 2);
  matrix.Set(1, 0, -1);
  EXPECT_EQ(matrix.At(0, 1), 3);
  matrix.Set(0, 1, std::numeric_limits<double>::infinity());
  EXPECT_EQ(matrix.At(0, 1), 0);
}

// Hosts of two, racks of two hosts.
TEST(LatencyClustersTest, FindsHostsInsideRacks) {
  DistanceMatrix matrix(8);
  for (size_t i = 0; i < 8; ++i) {
    for (size_t j = 0; j < 8; ++j) {
      matrix.Set(i, j, i / 2 == j / 2 ? 5 : i / 4 == j / 4 ? 50 : 200);
    }
  }
  EXPECT_THAT(LatencyClusters(matrix), ElementsAre(ElementsAre(0, 0, 1, 1, 2, 2, 3, 3),
                                                   ElementsAre(0, 0, 0, 0, 1, 1, 1, 1)));
}

TEST(LatencyClustersTest, LeavesAloneWhatIsFarFromEverybody) {
  DistanceMatrix matrix(5);
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 5; ++j) matrix.Set(i, j, i == 2 || j == 2 || i / 3 != j / 3 ? 40 : 10);
  }
  EXPECT_THAT(LatencyClusters(matrix), ElementsAre(ElementsAre(0, 0, 1, 2, 2)));
}

TEST(LatencyClustersTest, LeavesAloneWhatNobodyMeasured) {
  DistanceMatrix matrix(4);
  for (size_t i : {0, 1, 3}) {
    for (size_t j : {0, 1, 3}) matrix.Set(i, j, 10);
  }
  EXPECT_THAT(LatencyClusters(matrix), ElementsAre(ElementsAre(0, 0, 1, 0)));
  EXPECT_THAT(LatencyClusters(DistanceMatrix(3)), ElementsAre(ElementsAre(0, 1, 2)));
  EXPECT_THAT(LatencyClusters(DistanceMatrix(1)), IsEmpty());
}

}  // namespace
}  // namespace covey

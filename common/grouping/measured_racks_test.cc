// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/measured_racks.h"

#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;

std::vector<TopologyPath> Paths(const std::vector<std::string>& labels) {
  std::vector<TopologyPath> paths;
  for (const std::string& one : labels) paths.push_back(ParseTopologyPath(one));
  return paths;
}

std::vector<TopologyPath> Hosts(size_t members) {
  std::vector<TopologyPath> paths;
  for (size_t i = 0; i < members; ++i) paths.push_back(ParseTopologyPath(absl::StrCat("//h", i)));
  return paths;
}

DistanceMatrix Distances(const std::vector<int>& racks, double gap) {
  DistanceMatrix distances(racks.size());
  for (size_t from = 0; from < racks.size(); ++from) {
    for (size_t to = 0; to < racks.size(); ++to) {
      if (from != to) distances.Set(from, to, racks[from] == racks[to] ? 50e-6 : gap * 50e-6);
    }
  }
  return distances;
}

std::vector<std::string> RacksOf(const std::vector<TopologyPath>& paths) {
  std::vector<std::string> racks;
  for (const TopologyPath& path : paths) racks.push_back(path.rack());
  return racks;
}

TEST(MeasuredRacksTest, OnlyGroupsOfUnknownPlacesAreMeasured) {
  EXPECT_FALSE(RacksAreToBeMeasured(Hosts(3)));
  EXPECT_TRUE(RacksAreToBeMeasured(Hosts(4)));
  EXPECT_TRUE(RacksAreToBeMeasured(Hosts(32)));
  EXPECT_FALSE(RacksAreToBeMeasured(Hosts(33)));
  EXPECT_TRUE(RacksAreToBeMeasured(Paths({"", "", "", ""})));
  EXPECT_TRUE(RacksAreToBeMeasured(Paths({"//a", "//a", "//a", "//b"})));
  EXPECT_FALSE(RacksAreToBeMeasured(Paths({"//a", "//a/d0", "//a", "//a"})));
  EXPECT_FALSE(RacksAreToBeMeasured(Paths({"//a", "//b", "//c", "/r"})));
  EXPECT_FALSE(RacksAreToBeMeasured(Paths({"//a", "//b", "//c", "z"})));
}

TEST(MeasuredRacksTest, NamesRacksAndKeepsHosts) {
  std::vector<TopologyPath> paths = Hosts(5);
  EXPECT_EQ(NameMeasuredRacks(Distances({4, 9, 4, 9, 9}, 10), paths), 2u);
  EXPECT_THAT(RacksOf(paths),
              ElementsAre("measured-0", "measured-1", "measured-0", "measured-1", "measured-1"));
  EXPECT_EQ(paths[3].host(), "h3");
}

TEST(MeasuredRacksTest, ASmallGapIsNoise) {
  std::vector<TopologyPath> paths = Hosts(4);
  EXPECT_EQ(NameMeasuredRacks(Distances({0, 1, 0, 1}, 2.5), paths), 0u);
  EXPECT_THAT(RacksOf(paths), Each(""));
  EXPECT_EQ(NameMeasuredRacks(Distances({0, 1, 0, 1}, 3.5), paths), 2u);
}

TEST(MeasuredRacksTest, WhatIsFarAloneMayOnlyBeSlow) {
  std::vector<TopologyPath> paths = Hosts(5);
  EXPECT_EQ(NameMeasuredRacks(Distances({0, 0, 1, 0, 0}, 10), paths), 0u);
  EXPECT_THAT(RacksOf(paths), Each(""));
}

// Every node knows its distance to the next `known` ones, whose distance back is not known.
DistanceMatrix Sparse(const std::vector<int>& racks, size_t known) {
  const DistanceMatrix all = Distances(racks, 10);
  DistanceMatrix distances(racks.size());
  for (size_t from = 0; from < racks.size(); ++from) {
    for (size_t next = 1; next <= known; ++next) {
      const size_t to = (from + next) % racks.size();
      distances.Set(from, to, all.At(from, to));
    }
  }
  return distances;
}

TEST(MeasuredRacksTest, SomeDistancesOfEachNodeAreEnough) {
  std::vector<int> racks;
  for (int node = 0; node < 40; ++node) racks.push_back(node % 3 == 0 ? 0 : 1);
  std::vector<TopologyPath> paths = Hosts(racks.size());
  EXPECT_EQ(NameMeasuredRacks(Sparse(racks, kMeasuredDistancesMin / 2), paths), 2u);
  for (size_t node = 0; node < racks.size(); ++node) {
    EXPECT_EQ(paths[node].rack(), absl::StrCat("measured-", racks[node]));
  }
  paths = Hosts(racks.size());
  EXPECT_EQ(NameMeasuredRacks(Sparse(racks, kMeasuredDistancesMin / 2 - 1), paths), 0u);
}

TEST(MeasuredRacksTest, PartsThatNoDistanceConnectsAreNoRacks) {
  std::vector<int> racks;
  for (int node = 0; node < 20; ++node) racks.push_back(node / 10);
  DistanceMatrix distances = Distances(racks, 10);
  for (size_t from = 0; from < racks.size(); ++from) {
    for (size_t to = 0; to < racks.size(); ++to) {
      if (racks[from] != racks[to]) distances.Set(from, to, 0);
    }
  }
  std::vector<TopologyPath> paths = Hosts(racks.size());
  EXPECT_EQ(NameMeasuredRacks(distances, paths), 0u);
  EXPECT_THAT(RacksOf(paths), Each(""));
}

TEST(MeasuredRacksTest, HostsAreNotNamedAgain) {
  std::vector<TopologyPath> paths = Paths({"//a", "//a", "//b", "//b"});
  EXPECT_EQ(NameMeasuredRacks(Distances({0, 0, 1, 1}, 10), paths), 0u);
}

TEST(MeasuredRacksTest, AHostIsNotDivided) {
  std::vector<TopologyPath> paths = Paths({"//a", "//b", "//c", "//d", "//a"});
  EXPECT_EQ(NameMeasuredRacks(Distances({0, 0, 1, 1, 1}, 10), paths), 0u);
  EXPECT_THAT(RacksOf(paths), Each(""));
}

TEST(MeasuredRacksTest, AnUnknownDistanceLeavesAllAsItIs) {
  const double wrong[] = {0, -1, std::numeric_limits<double>::infinity(),
                          std::numeric_limits<double>::quiet_NaN()};
  for (const double distance : wrong) {
    DistanceMatrix distances = Distances({0, 1, 0, 1}, 10);
    std::vector<TopologyPath> paths = Hosts(4);
    distances.Set(2, 3, distance);
    EXPECT_EQ(NameMeasuredRacks(distances, paths), 2u) << "known in the other direction";
    paths = Hosts(4);
    distances.Set(3, 2, distance);
    EXPECT_EQ(NameMeasuredRacks(distances, paths), 0u);
    EXPECT_THAT(RacksOf(paths), Each(""));
  }
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/topology.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Level Common(absl::string_view a, absl::string_view b) {
  return CommonLevel(ParseTopologyPath(a), ParseTopologyPath(b));
}

TEST(TopologyTest, ReadsAndWritesPaths) {
  const TopologyPath path = ParseTopologyPath("z1/r2/h3/gpu0");
  EXPECT_EQ(path.zone(), "z1");
  EXPECT_EQ(path.rack(), "r2");
  EXPECT_EQ(path.host(), "h3");
  EXPECT_EQ(path.device(), "gpu0");
  EXPECT_EQ(path.at(Level::kZone), "z1");
  EXPECT_EQ(path.at(Level::kDevice), "gpu0");
  for (const char* labels : {"", "z", "z/r", "//h", "z/r/h/d", "///d"}) {
    EXPECT_EQ(FormatTopologyPath(ParseTopologyPath(labels)), labels);
  }
  EXPECT_EQ(FormatTopologyPath(ParseTopologyPath("z/r//")), "z/r");
  EXPECT_EQ(ParseTopologyPath("a/b/c/d/e").device(), "d/e");
}

TEST(TopologyTest, RefusesWhatPeopleMistype) {
  EXPECT_TRUE(CheckTopologyLabels("").ok());
  EXPECT_TRUE(CheckTopologyLabels("z/r/h/d").ok());
  EXPECT_THAT(CheckTopologyLabels("a/b/c/d/e").message(), HasSubstr("5 parts"));
  EXPECT_THAT(CheckTopologyLabels("z/rack 1").message(), HasSubstr("a space"));
  EXPECT_THAT(CheckTopologyLabels(std::string("z/r\0", 4)).message(), HasSubstr("control"));
  EXPECT_THAT(CheckTopologyLabels(std::string(257, 'x')).message(), HasSubstr("257 bytes"));
}

TEST(TopologyTest, FindsTheNarrowestSharedDomain) {
  EXPECT_EQ(Common("z/r/h/d", "z/r/h/d"), Level::kDevice);
  EXPECT_EQ(Common("z/r/h/d", "z/r/h/e"), Level::kHost);
  EXPECT_EQ(Common("z/r/h/d", "z/r/i/d"), Level::kRack);
  EXPECT_EQ(Common("z/r/h/d", "z/s/h/d"), Level::kZone);
  EXPECT_EQ(Common("z/r/h/d", "y/r/h/d"), Level::kCluster);
}

TEST(TopologyTest, UnknownPartsBringNobodyNearer) {
  EXPECT_EQ(Common("", ""), Level::kCluster);
  EXPECT_EQ(Common("z/r", "z/r"), Level::kRack);
  EXPECT_EQ(Common("z/r/h", "z/r/h"), Level::kHost);
  EXPECT_EQ(Common("z/r/h", "z/r/h/d"), Level::kHost);
  EXPECT_EQ(Common("//h", "//h"),
            Level::kHost);  // A name counts even where wider ones are unknown.
  EXPECT_EQ(Common("//h", "//i"), Level::kCluster);
}

TEST(TopologyTest, NumbersDomainsByName) {
  std::vector<TopologyPath> paths;
  for (const char* labels : {"b/r/h", "a/s/h", "a/r/h", "b/r/i", "a/r/h/d"}) {
    paths.push_back(ParseTopologyPath(labels));
  }
  EXPECT_THAT(DomainsAt(paths, Level::kCluster), ElementsAre(0, 0, 0, 0, 0));
  EXPECT_THAT(DomainsAt(paths, Level::kZone), ElementsAre(1, 0, 0, 1, 0));
  EXPECT_THAT(DomainsAt(paths, Level::kRack), ElementsAre(2, 1, 0, 2, 0));
  EXPECT_THAT(DomainsAt(paths, Level::kHost), ElementsAre(2, 1, 0, 3, 0));
  EXPECT_THAT(DomainsAt(paths, Level::kDevice), ElementsAre(3, 2, 0, 4, 1));
  EXPECT_TRUE(DomainsAt({}, Level::kRack).empty());
}

TEST(TopologyTest, NamesLevels) {
  EXPECT_EQ(LevelName(Level::kDevice), "device");
  EXPECT_EQ(LevelName(Level::kCluster), "cluster");
}

}  // namespace
}  // namespace covey

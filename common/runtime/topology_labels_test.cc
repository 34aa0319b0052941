// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/topology_labels.h"

#include <hwloc.h>

#include <map>
#include <vector>

#include "absl/strings/str_join.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

using Variables = std::map<std::string, std::string>;

absl::StatusOr<TopologyLabels> From(const Variables& variables, absl::string_view given = "",
                                    const std::string& device = "") {
  return TopologyLabelsFrom(given, {.environment =
                                        [&](const char* name) {
                                          const auto at = variables.find(name);
                                          return at == variables.end() ? nullptr
                                                                       : at->second.c_str();
                                        },
                                    .host_name = "box",
                                    .device = [&] { return device; }});
}

std::string LabelsFrom(const Variables& variables, absl::string_view given = "",
                       const std::string& device = "") {
  const auto found = From(variables, given, device);
  return found.ok() ? found->labels : std::string(found.status().message());
}

// As written: zone/rack/host/device.
std::string At(const std::string& zone, const std::string& rack, const std::string& host) {
  return absl::StrJoin({zone, rack, host}, "/");
}

const char kTree[] = "switch.switch.node";

TEST(TopologyLabelsTest, TakesTheFirstSourceThatSaysAnything) {
  const Variables kubernetes = {{"COVEY_ZONE", "eu-1"}, {"COVEY_RACK", "r7"}, {"NODE_NAME", "n3"}};
  Variables slurm = kubernetes;
  slurm.insert(
      {{"SLURM_TOPOLOGY_ADDR", "core.leaf3.node17"}, {"SLURM_TOPOLOGY_ADDR_PATTERN", kTree}});
  EXPECT_EQ(LabelsFrom(slurm, "z/r/h"), "z/r/h");
  EXPECT_EQ(From(slurm, "z/r/h")->source, "given");
  EXPECT_EQ(LabelsFrom(slurm), "core/leaf3/node17");
  EXPECT_EQ(From(slurm)->source, "SLURM_TOPOLOGY_ADDR");
  EXPECT_EQ(LabelsFrom(kubernetes), "eu-1/r7/n3");
  EXPECT_EQ(LabelsFrom({}), "//box");
  EXPECT_EQ(From({})->source, "host name");
}

TEST(TopologyLabelsTest, AddsTheDeviceUnlessLabelsWereGiven) {
  EXPECT_EQ(LabelsFrom({}, "", "numa1"), "//box/numa1");
  EXPECT_EQ(LabelsFrom({{"COVEY_RACK", "r"}}, "", "numa1"), At("", "r", "box/numa1"));
  EXPECT_EQ(LabelsFrom({}, "z/r/h", "numa1"), "z/r/h");
}

TEST(TopologyLabelsTest, ReadsSlurmsAddresses) {
  const auto read = [](const char* address, const char* pattern) {
    return LabelsFrom({{"SLURM_TOPOLOGY_ADDR", address}, {"SLURM_TOPOLOGY_ADDR_PATTERN", pattern}});
  };
  EXPECT_EQ(read("node17", "node"), "//node17");
  EXPECT_EQ(read("s0.node17", "switch.node"), At("", "s0", "node17"));
  EXPECT_EQ(read("a.b.c.n", "switch.switch.switch.node"), "a.b/c/n");
  EXPECT_EQ(read(".s2.n", kTree), At("", "s2", "n"));  // no switch above
  EXPECT_EQ(read("s0.n.example.org", "switch.node"), At("", "s0", "n.example.org"));
  EXPECT_EQ(read("b1.n", "block.node"), At("", "b1", "n"));            // the block plugin
  EXPECT_EQ(LabelsFrom({{"SLURM_TOPOLOGY_ADDR", "a.b.n"}}), "a/b/n");  // no pattern
}

TEST(TopologyLabelsTest, FillsWhatKubernetesLeavesOut) {
  EXPECT_EQ(LabelsFrom({{"COVEY_ZONE", "z"}}), "z//box");
  EXPECT_EQ(LabelsFrom({{"NODE_NAME", "n"}, {"COVEY_RACK", ""}}), "//n");
}

TEST(TopologyLabelsTest, NamesWhatIsWrong) {
  EXPECT_THAT(LabelsFrom({}, "a/b/c/d/e"), AllOf(HasSubstr("'a/b/c/d/e'"), HasSubstr("5 parts")));
  EXPECT_THAT(
      LabelsFrom({{"SLURM_TOPOLOGY_ADDR", "s0.n1"}, {"SLURM_TOPOLOGY_ADDR_PATTERN", kTree}}),
      AllOf(HasSubstr("SLURM_TOPOLOGY_ADDR is 's0.n1'"), HasSubstr("the 3 parts")));
  EXPECT_THAT(LabelsFrom({{"SLURM_TOPOLOGY_ADDR", "s0.n1"},
                          {"SLURM_TOPOLOGY_ADDR_PATTERN", "switch.switch"}}),
              HasSubstr("SLURM_TOPOLOGY_ADDR_PATTERN is 'switch.switch'"));
  EXPECT_THAT(LabelsFrom({{"SLURM_TOPOLOGY_ADDR", "s0."}}), HasSubstr("a node's name"));
  EXPECT_THAT(LabelsFrom({{"SLURM_TOPOLOGY_ADDR", "s0/n"}}), HasSubstr("a slash"));
  EXPECT_THAT(LabelsFrom({{"COVEY_RACK", "a/b"}}), HasSubstr("COVEY_RACK is 'a/b'"));
  EXPECT_THAT(LabelsFrom({{"NODE_NAME", "a b"}}), HasSubstr("NODE_NAME is 'a b'"));
  EXPECT_THAT(
      LabelsFrom({{"COVEY_ZONE", std::string(200, 'z')}, {"NODE_NAME", std::string(200, 'n')}}),
      HasSubstr("402 bytes"));
}

TEST(TopologyLabelsTest, FindsThisProcess) {
  EXPECT_EQ(*FindTopologyLabels("z/r/h"), "z/r/h");
  EXPECT_FALSE(FindTopologyLabels("a/b/c/d/e").ok());
  EXPECT_TRUE(FindTopologyLabels("").ok());
}

// The device of some processors of a machine that hwloc invents.
std::string Device(const char* machine, const std::vector<unsigned>& cpus) {
  hwloc_topology_t topology = nullptr;
  hwloc_topology_init(&topology);
  hwloc_topology_set_synthetic(topology, machine);
  hwloc_topology_load(topology);
  hwloc_bitmap_t set = hwloc_bitmap_alloc();
  for (unsigned cpu : cpus) hwloc_bitmap_set(set, cpu);
  const std::string device = DeviceOf(topology, set);
  hwloc_bitmap_free(set);
  hwloc_topology_destroy(topology);
  return device;
}

TEST(TopologyLabelsTest, NamesTheDeviceThatTheProcessIsBoundTo) {
  const char kTwoNodes[] = "package:2 [numa] core:4 pu:1";
  EXPECT_EQ(Device(kTwoNodes, {0, 1}), "numa0");
  EXPECT_EQ(Device(kTwoNodes, {5}), "numa1");
  EXPECT_EQ(Device(kTwoNodes, {3, 4}), "");
  EXPECT_EQ(Device("package:2 core:4 pu:1", {6, 7}), "package1");
  EXPECT_EQ(Device("package:1 core:4 pu:1", {0}), "");  // nothing to tell apart
}

}  // namespace
}  // namespace covey

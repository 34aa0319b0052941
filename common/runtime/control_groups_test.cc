// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/control_groups.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace covey {
namespace {

// A folder in place of /sys/fs/cgroup.
class ControlGroupsTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = testing::TempDir() + "/groups-XXXXXX";
    root_ = mkdtemp(path.data());
  }
  void TearDown() override { std::filesystem::remove_all(root_); }

  void Plant(const std::string& file, const std::string& text) {
    const std::filesystem::path path = root_ + "/" + file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  std::string root_;
};

TEST_F(ControlGroupsTest, TheLeastOfAllGroupsOfTheSecondVersionHolds) {
  Plant("run/inner/memory.max", "max\n");
  Plant("run/inner/memory.current", "100\n");
  Plant("run/inner/cpu.max", "max 100000\n");
  Plant("run/memory.max", "5000\n");
  Plant("run/memory.current", "3000\n");
  Plant("run/memory.stat", "anon 900\ninactive_file 500\nactive_file 700\n");
  Plant("run/cpu.max", "150000 100000\n");
  Plant("memory.max", "9000\n");
  Plant("memory.current", "8900\n");
  const ControlGroupLimits limits = ReadControlGroups("1:name=systemd:/x\n0::/run/inner\n", root_);
  EXPECT_EQ(limits.memory_bytes, 5000u);
  EXPECT_EQ(limits.free_memory_bytes, 100u) << "what a group further up leaves";
  EXPECT_EQ(limits.cores, 1.5);
}

TEST_F(ControlGroupsTest, CachedFilesThatAreNotUsedAreFree) {
  Plant("memory.max", "5000\n");
  Plant("memory.current", "4900\n");
  Plant("memory.stat", "inactive_file 4000\n");
  EXPECT_EQ(ReadControlGroups("0::/\n", root_).free_memory_bytes, 4100u);
}

TEST_F(ControlGroupsTest, LimitsOfTheFirstVersionHold) {
  Plant("memory/srv/memory.limit_in_bytes", "6000\n");
  Plant("memory/srv/memory.usage_in_bytes", "4000\n");
  Plant("memory/srv/memory.stat", "inactive_file 1\ntotal_inactive_file 1000\n");
  Plant("cpu/srv/cpu.cfs_quota_us", "50000\n");
  Plant("cpu/srv/cpu.cfs_period_us", "100000\n");
  const ControlGroupLimits limits =
      ReadControlGroups("5:memory:/srv/pod\n4:cpu,cpuacct:/srv/pod\n0::/\n", root_);
  EXPECT_EQ(limits.memory_bytes, 6000u);
  EXPECT_EQ(limits.free_memory_bytes, 3000u);
  EXPECT_EQ(limits.cores, 0.5);
}

TEST_F(ControlGroupsTest, TheFirstVersionHasNumbersForNoLimit) {
  Plant("memory/memory.limit_in_bytes", "9223372036854771712\n");
  Plant("memory/memory.usage_in_bytes", "4000\n");
  Plant("cpu/cpu.cfs_quota_us", "-1\n");
  Plant("cpu/cpu.cfs_period_us", "100000\n");
  const ControlGroupLimits limits = ReadControlGroups("5:memory:/\n4:cpu:/\n", root_);
  EXPECT_EQ(limits.memory_bytes, std::nullopt);
  EXPECT_EQ(limits.free_memory_bytes, std::nullopt);
  EXPECT_EQ(limits.cores, std::nullopt);
}

TEST_F(ControlGroupsTest, WhatIsNotThereIsNoLimit) {
  for (const char* cgroup : {"", "0::/a\n", "0::\n", "x\n5:memory:/a\n", "::", "0::/srv/../..\n"}) {
    const ControlGroupLimits limits = ReadControlGroups(cgroup, root_);
    EXPECT_EQ(limits.memory_bytes, std::nullopt) << cgroup;
    EXPECT_EQ(limits.cores, std::nullopt) << cgroup;
  }
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <map>

#include "client/cli/bench/machine/environment.h"
#include "client/cli/bench/machine/process_family.h"

namespace covey::cli {
namespace {

TEST(ProcessFamilyTest, ReadsThisProcess) {
  const ProcessFamily family({});
  const Usage before = family.ReadUsage();
  EXPECT_GT(before.page_faults, 0u);
  Cost cost;
  family.ReadMemory(cost);
  EXPECT_GT(cost.client_pss_bytes, 0u);
  EXPECT_EQ(cost.server_pss_bytes, 0u);
  const MachineTicks ticks = family.ReadTicks();
  EXPECT_GT(ticks.total, 0u);
  EXPECT_LE(ticks.busy, ticks.total);
}

TEST(ProcessFamilyTest, AProcessThatDoesNotExistIsNothing) {
  const ProcessFamily family({999999999});
  Cost cost;
  family.ReadMemory(cost);
  EXPECT_EQ(cost.server_pss_bytes, 0u);
}

TEST(EnvironmentTest, NamesEverythingOnce) {
  std::map<std::string, std::string> environment;
  for (const auto& [name, value] : ReadEnvironment()) {
    EXPECT_FALSE(value.empty()) << name;
    EXPECT_TRUE(environment.emplace(name, value).second) << name;
  }
  EXPECT_THAT(environment["kernel"], ::testing::HasSubstr("Linux"));
}

}  // namespace
}  // namespace covey::cli

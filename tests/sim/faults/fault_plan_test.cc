// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/faults/fault_plan.h"

#include <gtest/gtest.h>

#include "common/faults/fault_file.h"

namespace covey::sim {
namespace {

TEST(FaultPlanTest, HitsExistingProcessesDuringTheSafetyPhaseInOrder) {
  const FaultTargets targets{.names = {"scheduler", "server-0", "server-1", "worker-0", "worker-1"},
                             .hubs = 3,
                             .servers = {"server-0", "server-1"},
                             .patience = absl::Seconds(3),
                             .mortal_servers = {"server-1"},
                             .server_deaths_max = 1,
                             .mortal_workers = {"worker-0", "worker-1"},
                             .worker_deaths_max = 1};
  size_t faults = 0;
  size_t deaths = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    absl::Duration last;
    const FaultPlan plan = DrawFaults(Random(seed), targets, absl::Seconds(10));
    EXPECT_TRUE(ValidateNames(plan, targets.names).ok()) << seed;
    for (const Fault& fault : plan) {
      ++faults;
      const absl::Status valid = Validate(fault);
      EXPECT_TRUE(valid.ok()) << valid;
      EXPECT_GE(fault.at, last);
      last = fault.at;
      EXPECT_LE(fault.at, absl::Seconds(10));
      if (fault.kind != FaultKind::kKill || fault.duration < absl::InfiniteDuration()) continue;
      ++deaths;
      EXPECT_NE(fault.target, "scheduler");
      EXPECT_NE(fault.target, "server-0");
    }
  }
  EXPECT_GT(faults, 200u);
  EXPECT_GT(deaths, 20u);
}

// A server that was declared dead continues, and its messages to another process arrive late.
TEST(FaultPlanTest, MakesZombies) {
  const FaultTargets targets{.names = {"scheduler", "server-0", "server-1", "client-0"},
                             .hubs = 3,
                             .servers = {"server-0", "server-1"},
                             .patience = absl::Seconds(30)};
  size_t zombies = 0;
  size_t clogs = 0;
  size_t late_clients = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    for (const Fault& fault : DrawFaults(Random(seed), targets, absl::Seconds(10))) {
      // No other connection fault lasts this long.
      if (fault.duration < targets.patience || fault.kind < FaultKind::kPartition) continue;
      if (fault.kind == FaultKind::kClog) ++clogs;
      if (fault.kind != FaultKind::kPartition) continue;
      EXPECT_EQ(fault.other, "scheduler");
      ++(fault.target == "client-0" ? late_clients : zombies);
    }
  }
  EXPECT_GT(zombies, 50u);
  EXPECT_GT(clogs, 30u);
  EXPECT_GT(late_clients, 5u);
}

// The printed plan can be replayed.
TEST(FaultPlanTest, CanBeWrittenToAFile) {
  const FaultTargets targets{.names = {"scheduler", "server-0", "worker-0"}, .hubs = 2};
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    const FaultPlan plan = DrawFaults(Random(seed), targets, absl::Seconds(10));
    const auto read = ParseFaultPlan(PrintFaultPlan(plan), "printed");
    ASSERT_TRUE(read.ok()) << read.status();
    EXPECT_TRUE(*read == plan) << seed;
  }
}

}  // namespace
}  // namespace covey::sim

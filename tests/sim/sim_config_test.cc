#include "tests/sim/sim_config.h"

#include <gtest/gtest.h>

#include "tests/sim/fault_plan.h"

namespace covey::sim {
namespace {

TEST(SimConfigTest, EveryConfigurationIsValid) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    const SimConfig config = DrawConfig(Random(seed), 1);
    EXPECT_TRUE(config.scheduler.Validate().ok()) << seed;
    EXPECT_GE(config.servers, 1u);
    EXPECT_GT(config.safety, absl::ZeroDuration());
  }
}

TEST(FaultPlanTest, HitsExistingProcessesDuringTheSafetyPhaseInOrder) {
  constexpr size_t kProcesses = 5;
  size_t faults = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    absl::Duration last;
    for (const Fault& fault : DrawFaults(Random(seed), kProcesses, 2, absl::Seconds(10))) {
      ++faults;
      EXPECT_GE(fault.at, last);
      last = fault.at;
      EXPECT_LT(fault.at, absl::Seconds(10));
      EXPECT_LT(fault.target, kProcesses);
      EXPECT_LT(fault.other, kProcesses);
      EXPECT_NE(fault.target, fault.other);
    }
  }
  EXPECT_GT(faults, 200u);
}

}  // namespace
}  // namespace covey::sim

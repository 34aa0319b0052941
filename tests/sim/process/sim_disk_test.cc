// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/sim_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey::sim {
namespace {

using testing::ElementsAre;

class SimDiskTest : public testing::Test {
 protected:
  void Run(absl::Duration duration) {
    const absl::Time until = simulator_.now() + duration;
    while (simulator_.RunOne(until)) {
    }
  }

  Simulator simulator_{1};
  SimDisk disk_{simulator_, 1, absl::Milliseconds(5)};
};

TEST_F(SimDiskTest, MakesBytesDurableInOrder) {
  std::vector<int> durable;
  disk_.Append("one", [&] { durable.push_back(1); });
  disk_.Append("two", [&] { durable.push_back(2); });
  EXPECT_EQ(disk_.content(), "");
  Run(absl::Seconds(1));
  EXPECT_EQ(disk_.content(), "onetwo");
  EXPECT_THAT(durable, ElementsAre(1, 2));
}

TEST_F(SimDiskTest, ACrashKeepsWhatIsDurableAndAtMostAPieceOfTheNext) {
  size_t torn = 0;
  for (uint64_t which = 0; which < 50; ++which) {
    SimDisk disk(simulator_, which, absl::Milliseconds(5));
    disk.Append("durable.", [] {});
    Run(absl::Seconds(1));
    disk.Append("lost", [] { FAIL() << "a crashed process is told nothing"; });
    disk.Append("never", [] { FAIL() << "a crashed process is told nothing"; });
    disk.Crash();
    Run(absl::Seconds(1));
    EXPECT_TRUE(std::string("durable.lost").rfind(disk.content(), 0) == 0) << disk.content();
    EXPECT_GE(disk.content().size(), 8u);
    torn += disk.content().size() > 8 && disk.content().size() < 12;
  }
  EXPECT_GT(torn, 0u);
}

}  // namespace
}  // namespace covey::sim

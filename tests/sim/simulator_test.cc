#include "tests/sim/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/sim/fault_plan.h"
#include "tests/sim/sim_config.h"
#include "tests/sim/sim_disk.h"

namespace covey::sim {
namespace {

using testing::ElementsAre;

constexpr absl::Time kStart = absl::UnixEpoch();

TEST(SimulatorTest, RunsEventsInOrderOfTimeThenOfScheduling) {
  Simulator simulator(1);
  std::vector<int> order;
  simulator.After(absl::Seconds(2), [&] { order.push_back(3); });
  simulator.After(absl::Seconds(1), [&] {
    order.push_back(1);
    simulator.After(absl::ZeroDuration(), [&] { order.push_back(2); });
  });
  simulator.After(absl::Seconds(2), [&] { order.push_back(4); });
  while (simulator.RunOne(kStart + absl::Seconds(2))) {
  }
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(simulator.now(), kStart + absl::Seconds(2));
}

TEST(SimulatorTest, StopsTheClockWhereItIsTold) {
  Simulator simulator(1);
  bool ran = false;
  simulator.After(absl::Seconds(3), [&] { ran = true; });
  EXPECT_FALSE(simulator.RunOne(kStart + absl::Seconds(2)));
  EXPECT_FALSE(ran);
  EXPECT_EQ(simulator.now(), kStart + absl::Seconds(2));
  EXPECT_TRUE(simulator.RunOne(kStart + absl::Seconds(3)));
  EXPECT_TRUE(ran);
}

TEST(SimulatorTest, DigestTellsHistoriesApart) {
  const auto digest = [](absl::Duration when, absl::string_view note) {
    Simulator simulator(1);
    simulator.After(when, [&simulator, note] { simulator.Note(note); });
    simulator.RunOne(kStart + absl::Hours(1));
    return simulator.digest();
  };
  EXPECT_EQ(digest(absl::Seconds(1), "a"), digest(absl::Seconds(1), "a"));
  EXPECT_NE(digest(absl::Seconds(1), "a"), digest(absl::Seconds(2), "a"));
  EXPECT_NE(digest(absl::Seconds(1), "a"), digest(absl::Seconds(1), "b"));
}

TEST(SimulatorTest, SplitsItsSeedIntoIndependentStreams) {
  Simulator simulator(7);
  const uint64_t network = simulator.Draws(Simulator::Stream::kNetwork).Next();
  EXPECT_EQ(network, simulator.Draws(Simulator::Stream::kNetwork).Next());
  EXPECT_NE(network, simulator.Draws(Simulator::Stream::kFaults).Next());
  EXPECT_NE(simulator.Draws(Simulator::Stream::kProcess, 1).Next(),
            simulator.Draws(Simulator::Stream::kProcess, 2).Next());
  EXPECT_NE(network, Simulator(8).Draws(Simulator::Stream::kNetwork).Next());
}

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

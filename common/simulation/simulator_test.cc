// SPDX-License-Identifier: Apache-2.0
#include "common/simulation/simulator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey {
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

}  // namespace
}  // namespace covey

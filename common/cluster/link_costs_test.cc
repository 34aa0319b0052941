// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/link_costs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(LinkCostsTest, FitsLatencyAndBandwidthToTheShortestRoundTrips) {
  // 50 us each way, 1 GB/s; noise only on some samples.
  std::vector<LinkSample> samples = {
      {.level = Level::kRack, .bytes = 0, .round_trip_seconds = 130e-6},
      {.level = Level::kRack, .bytes = 0, .round_trip_seconds = 100e-6},
      {.level = Level::kRack, .bytes = 1'000'000, .round_trip_seconds = 1.1e-3},
      {.level = Level::kRack, .bytes = 1'000'000, .round_trip_seconds = 9e-3},
      {.level = Level::kRack, .bytes = 1'000'000, .round_trip_seconds = -1},
      {.level = Level::kRack, .bytes = 0, .round_trip_seconds = std::nan("")}};
  for (int i = 0; i < 2; ++i) {
    const LinkCosts costs = FitLinkCosts(samples);
    EXPECT_NEAR(costs.at(Level::kRack).latency_seconds, 50e-6, 1e-9);
    EXPECT_NEAR(costs.at(Level::kRack).bytes_per_second, 1e9, 1e3);
    std::reverse(samples.begin(), samples.end());
  }
}

TEST(LinkCostsTest, FitsTheCostOfAMessageToSeveralAtOnce) {
  const auto one = [](Level level, double seconds) {
    return LinkSample{.level = level, .round_trip_seconds = seconds};
  };
  const auto eleven = [](Level level, double seconds) {
    return LinkSample{.level = level, .messages = 11, .round_trip_seconds = seconds};
  };
  // 2, 3 and 40 us for each of the messages that go and come.
  std::vector<LinkSample> samples = {one(Level::kHost, 30e-6),    one(Level::kHost, 20e-6),
                                     eleven(Level::kHost, 60e-6), eleven(Level::kHost, 80e-6),
                                     eleven(Level::kRack, 1e-3),  one(Level::kRack, 200e-6),
                                     eleven(Level::kZone, 5e-6),  eleven(Level::kHost, -60e-6)};
  for (int i = 0; i < 2; ++i) {
    EXPECT_NEAR(FitLinkCosts(samples).message_seconds, 3e-6, 1e-9);
    EXPECT_NEAR(FitLinkCosts(samples).at(Level::kHost).latency_seconds, 10e-6, 1e-9);
    std::reverse(samples.begin(), samples.end());
  }
  samples = {one(Level::kHost, 20e-6), eleven(Level::kHost, 10e-6)};
  EXPECT_EQ(FitLinkCosts(samples).message_seconds, kMessageSecondsMin);
  samples = {one(Level::kHost, 20e-6), eleven(Level::kHost, 1e3)};
  EXPECT_EQ(FitLinkCosts(samples).message_seconds, kMessageSecondsMax);
}

TEST(LinkCostsTest, LendsToLevelsWithoutSamples) {
  const std::vector<LinkSample> samples = {
      {.level = Level::kHost, .bytes = 64, .round_trip_seconds = 60e-6},
      {.level = Level::kZone, .bytes = 64, .round_trip_seconds = 400e-6}};
  LinkCosts otherwise;
  otherwise.at(Level::kRack).uplink_bytes_per_second = 7e12;
  const LinkCosts costs = FitLinkCosts(samples, otherwise);
  const auto latency = [&](Level level) { return costs.at(level).latency_seconds; };
  EXPECT_NEAR(latency(Level::kHost), 30e-6, 1e-7);
  EXPECT_EQ(latency(Level::kDevice), latency(Level::kHost));
  EXPECT_EQ(latency(Level::kRack), latency(Level::kHost));
  EXPECT_NEAR(latency(Level::kZone), 200e-6, 1e-7);
  EXPECT_EQ(latency(Level::kCluster), latency(Level::kZone));
  EXPECT_EQ(costs.at(Level::kRack).uplink_bytes_per_second, 7e12);
}

TEST(LinkCostsTest, ExpectsANarrowUplinkWhereFlowsOutAreSlower) {
  const auto two_sizes = [](Level level, double bytes_per_second) {
    return std::vector<LinkSample>{{.level = level, .bytes = 0, .round_trip_seconds = 100e-6},
                                   {.level = level,
                                    .bytes = 1'000'000,
                                    .round_trip_seconds = 100e-6 + 1e6 / bytes_per_second}};
  };
  std::vector<LinkSample> samples = two_sizes(Level::kHost, 5e9);
  for (const LinkSample& sample : two_sizes(Level::kRack, 4.5e9)) samples.push_back(sample);
  for (const LinkSample& sample : two_sizes(Level::kZone, 0.5e9)) samples.push_back(sample);
  const LinkCosts costs = FitLinkCosts(samples);
  // Nearly as fast: the card carries at least one flow. A tenth: a narrow uplink.
  EXPECT_NEAR(costs.at(Level::kHost).uplink_bytes_per_second, 4.5e9, 1e3);
  EXPECT_NEAR(costs.at(Level::kRack).uplink_bytes_per_second, 0.5e9, 1e3);
  EXPECT_EQ(costs.at(Level::kZone).uplink_bytes_per_second,
            LinkCosts().at(Level::kZone).uplink_bytes_per_second);
  // Without a measurement inside there is nothing to compare.
  EXPECT_EQ(FitLinkCosts(two_sizes(Level::kZone, 0.5e9)).at(Level::kRack).uplink_bytes_per_second,
            LinkCosts().at(Level::kRack).uplink_bytes_per_second);
}

TEST(LinkCostsTest, KeepsWhatWasNotMeasured) {
  const LinkCosts costs = FitLinkCosts({});
  EXPECT_EQ(costs.at(Level::kZone).latency_seconds, LinkCosts().at(Level::kZone).latency_seconds);
  // A round trip shorter than the cost of messages is no latency.
  const std::vector<LinkSample> quick = {
      {.level = Level::kHost, .bytes = 0, .round_trip_seconds = 1e-9}};
  EXPECT_EQ(FitLinkCosts(quick).at(Level::kHost).latency_seconds, LinkCosts().message_seconds);
}

}  // namespace
}  // namespace covey

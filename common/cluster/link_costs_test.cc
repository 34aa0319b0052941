#include "common/cluster/link_costs.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(LinkCostsTest, FitsLatencyAndBandwidthToTheShortestRoundTrips) {
  // 50 us each way, 1 GB/s; noise only on some.
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

TEST(LinkCostsTest, LendsToLevelsWithoutSamples) {
  const std::vector<LinkSample> samples = {
      {.level = Level::kHost, .bytes = 64, .round_trip_seconds = 60e-6},
      {.level = Level::kZone, .bytes = 64, .round_trip_seconds = 400e-6}};
  LinkCosts otherwise;
  otherwise.at(Level::kRack).uplink_bytes_per_second = 7;
  const LinkCosts costs = FitLinkCosts(samples, otherwise);
  const auto latency = [&](Level level) { return costs.at(level).latency_seconds; };
  EXPECT_NEAR(latency(Level::kHost), 30e-6, 1e-7);
  EXPECT_EQ(latency(Level::kDevice), latency(Level::kHost));
  EXPECT_EQ(latency(Level::kRack), latency(Level::kHost));
  EXPECT_NEAR(latency(Level::kZone), 200e-6, 1e-7);
  EXPECT_EQ(latency(Level::kCluster), latency(Level::kZone));
  EXPECT_EQ(costs.at(Level::kRack).uplink_bytes_per_second, 7);
}

TEST(LinkCostsTest, KeepsWhatWasNotMeasured) {
  const LinkCosts costs = FitLinkCosts({});
  EXPECT_EQ(costs.at(Level::kZone).latency_seconds, LinkCosts().at(Level::kZone).latency_seconds);
  // A round trip below what messages cost is no latency.
  const std::vector<LinkSample> quick = {
      {.level = Level::kHost, .bytes = 0, .round_trip_seconds = 1e-9}};
  EXPECT_EQ(FitLinkCosts(quick).at(Level::kHost).latency_seconds, LinkCosts().message_seconds);
}

}  // namespace
}  // namespace covey

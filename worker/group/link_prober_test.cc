// SPDX-License-Identifier: Apache-2.0
#include "worker/group/link_prober.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Two racks of two hosts with one or two members each.
std::vector<TopologyPath> Paths() {
  std::vector<TopologyPath> paths;
  for (const char* labels :
       {"z/r0/h0/d0", "z/r0/h0/d1", "z/r0/h1/d0", "z/r1/h2/d0", "z/r1/h3/d0"}) {
    paths.push_back(ParseTopologyPath(labels));
  }
  return paths;
}

// Between two echoes of a burst.
constexpr absl::Duration kNextOfBurst = absl::Nanoseconds(10);

// Every probe takes what `seconds` says for its peer and bytes.
template <typename Seconds>
absl::Duration Measure(LinkProber& prober, uint32_t rank, Seconds seconds) {
  absl::Time now = absl::UnixEpoch();
  prober.Begin(now, rank, Paths());
  for (std::vector<LinkProber::Probe> probes = prober.TakeProbes(); !probes.empty();
       probes = prober.TakeProbes()) {
    EXPECT_TRUE(probes.size() == 1u || probes.size() == LinkProber::kBurst);
    now += absl::Seconds(seconds(probes[0]));
    if (now >= prober.NextWake()) {
      now = prober.NextWake();
      prober.Wake(now);
      continue;
    }
    for (const LinkProber::Probe& probe : probes) {
      EXPECT_THAT(prober.TakeProbes(), IsEmpty()) << "one stage after the other";
      now += kNextOfBurst;
      prober.Echo(now, probe.peer, probe.number);
    }
  }
  EXPECT_TRUE(prober.done());
  return now - absl::UnixEpoch();
}

std::vector<Level> LevelsOf(const LinkProber& prober) {
  std::vector<Level> levels;
  for (const LinkSample& sample : prober.samples()) levels.push_back(sample.level);
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  return levels;
}

TEST(LinkProberTest, MeasuresEachLevelOnceAndDoesNotCountFirstContact) {
  LinkProber prober;
  bool first = true;
  const absl::Duration took = Measure(prober, 0, [&](const LinkProber::Probe& probe) {
    return std::exchange(first, false) ? 0.5 : 0.0001 + static_cast<double>(probe.bytes) / 1e9;
  });
  EXPECT_LT(took, absl::Seconds(0.51));
  EXPECT_THAT(LevelsOf(prober), ElementsAre(Level::kHost, Level::kRack, Level::kZone));
  for (const LinkSample& sample : prober.samples()) {
    EXPECT_NEAR(sample.round_trip_seconds,
                0.0001 + static_cast<double>(sample.bytes) / 1e9 + 1e-8 * sample.messages, 1e-9);
  }
  EXPECT_EQ(prober.samples().size(), 3u * 7u);
}

TEST(LinkProberTest, OneMemberOfADomainMeasuresWhatTheyShare) {
  for (const auto& [rank, levels] :
       std::vector<std::pair<uint32_t, std::vector<Level>>>{{1, {Level::kHost}},
                                                            {2, {Level::kRack}},
                                                            {3, {Level::kRack, Level::kZone}},
                                                            {4, {Level::kRack}}}) {
    LinkProber prober;
    Measure(prober, rank, [](const LinkProber::Probe&) { return 0.0001; });
    EXPECT_EQ(LevelsOf(prober), levels) << rank;
  }
}

TEST(LinkProberTest, ASlowLinkIsNotFilled) {
  LinkProber prober;
  size_t largest = 0;
  const absl::Duration took = Measure(prober, 4, [&](const LinkProber::Probe& probe) {
    largest = std::max(largest, probe.bytes);
    return 0.0001 + static_cast<double>(probe.bytes) / 3e6;  // 11 ms for the small probe
  });
  EXPECT_EQ(largest, LinkProber::kSmallProbeBytes);
  EXPECT_LT(took, absl::Milliseconds(15));
}

// A token bucket lets the small probe through at full speed.
TEST(LinkProberTest, ALinkThatIsFastForAMomentIsMeasuredByTheLargeProbe) {
  LinkProber prober;
  Measure(prober, 4, [](const LinkProber::Probe& probe) {
    constexpr size_t kBucket = 64 << 10;
    return 0.0001 + static_cast<double>(probe.bytes - std::min(probe.bytes, kBucket)) / 5e6;
  });
  const LinkCosts costs = FitLinkCosts(prober.samples());
  EXPECT_NEAR(costs.at(Level::kRack).bytes_per_second, 5e6, 0.8e6);
}

TEST(LinkProberTest, AProbeThatWaitsForAProcessorDoesNotEndTheMeasurement) {
  LinkProber prober;
  Measure(prober, 4, [](const LinkProber::Probe& probe) {
    return 0.0001 + static_cast<double>(probe.bytes) / 1e9 + (probe.bytes > 0 ? 0.004 : 0);
  });
  EXPECT_EQ(prober.samples().back().bytes, LinkProber::kLargeProbeBytes);
}

TEST(LinkProberTest, ALateProbeCountsAsItsDeadline) {
  LinkProber prober;
  Measure(prober, 4, [](const LinkProber::Probe& probe) { return probe.bytes == 0 ? 0.001 : 9.0; });
  ASSERT_EQ(prober.samples().size(), 5u);
  EXPECT_EQ(prober.samples()[3].messages, LinkProber::kBurst);
  EXPECT_EQ(prober.samples().back().bytes, LinkProber::kSmallProbeBytes);
  EXPECT_GT(prober.samples().back().round_trip_seconds, 0.01);
}

TEST(LinkProberTest, APeerThatNeverAnswersIsGivenUp) {
  LinkProber prober;
  const absl::Duration took = Measure(prober, 4, [](const LinkProber::Probe&) { return 9.0; });
  EXPECT_LE(took, absl::Seconds(2));
  EXPECT_THAT(prober.samples(), IsEmpty());
}

TEST(LinkProberTest, StrangeEchoesHaveNoEffect) {
  LinkProber prober;
  prober.Begin(absl::UnixEpoch(), 4, Paths());
  const LinkProber::Probe probe = prober.TakeProbes()[0];
  prober.Echo(absl::UnixEpoch(), probe.peer, probe.number + 1);
  prober.Echo(absl::UnixEpoch(), probe.peer + 1, probe.number);
  EXPECT_THAT(prober.TakeProbes(), IsEmpty());
  prober.Echo(absl::UnixEpoch(), probe.peer, probe.number);
  EXPECT_EQ(prober.TakeProbes().size(), 1u);
}

}  // namespace
}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "common/trace/clock_offset.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/base/random.h"

namespace covey {
namespace {

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

// A network and a clock at its other end.
struct Link {
  absl::Duration one_way;
  absl::Duration jitter;       // at most, each way
  double stalls = 0;           // share of exchanges with one way of 20 ms
  absl::Duration ahead;        // the other clock at kStart
  double drift = 0;            // of the other clock
  double way_back_longer = 0;  // share of one_way

  absl::Time Other(absl::Time t) const { return t + ahead + drift * (t - kStart); }
};

// The largest error of the line during the minute after `minutes` of heartbeats.
absl::Duration WorstError(const Link& link, absl::Duration length, uint64_t seed) {
  Random random(seed);
  ClockOffset clock;
  const auto way = [&](double longer) {
    absl::Duration took = link.one_way * (1 + longer) + random.Uniform() * link.jitter;
    if (random.Uniform() < link.stalls) took += absl::Milliseconds(20);
    return took;
  };
  absl::Time t = kStart;
  absl::Duration worst = absl::ZeroDuration();
  for (; t < kStart + length; t += absl::Milliseconds(500)) {
    const absl::Time there = t + way(0);
    clock.Add(t, there + way(link.way_back_longer), link.Other(there));
  }
  const auto line = clock.line();
  for (absl::Time at = t - absl::Minutes(1); at < t; at += absl::Seconds(1)) {
    worst = std::max(worst, absl::AbsDuration(line->Map(at) - link.Other(at)));
  }
  return worst;
}

TEST(ClockOffsetTest, KnowsNothingBeforeTheFirstAnswer) {
  EXPECT_FALSE(ClockOffset().line().has_value());
}

TEST(ClockOffsetTest, OneAnswerTellsTheOffsetWithinHalfItsRoundTrip) {
  ClockOffset clock;
  clock.Add(kStart, kStart + absl::Milliseconds(10), kStart + absl::Seconds(100));
  ASSERT_TRUE(clock.line().has_value());
  EXPECT_EQ(clock.line()->offset, absl::Seconds(100) - absl::Milliseconds(5));
  EXPECT_EQ(clock.line()->error, absl::Milliseconds(5));
  EXPECT_EQ(clock.line()->drift, 0);
}

TEST(ClockOffsetTest, TheShortestExchangeCounts) {
  ClockOffset clock;
  for (int i = 0; i < 4; ++i) {
    const absl::Time sent = kStart + i * absl::Seconds(1);
    const absl::Duration back = i == 2 ? absl::Microseconds(100) : absl::Milliseconds(30);
    clock.Add(sent, sent + absl::Microseconds(100) + back,
              sent + absl::Microseconds(100) + absl::Seconds(9));
  }
  EXPECT_EQ(clock.line()->offset, absl::Seconds(9));
  EXPECT_EQ(clock.line()->error, absl::Microseconds(100));
}

TEST(ClockOffsetTest, DriftingClocksAgreeWithinAMillisecondOnBusyNetworks) {
  const Link busy{.one_way = absl::Microseconds(200),
                  .jitter = absl::Microseconds(600),
                  .stalls = 0.02,
                  .ahead = absl::Seconds(-70),
                  .drift = 50e-6};
  const Link far{.one_way = absl::Milliseconds(5),
                 .jitter = absl::Milliseconds(2),
                 .stalls = 0.02,
                 .ahead = absl::Hours(3),
                 .drift = -100e-6};
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    EXPECT_LT(WorstError(busy, absl::Minutes(1), seed), absl::Microseconds(300)) << seed;
    EXPECT_LT(WorstError(far, absl::Minutes(1), seed), absl::Microseconds(900)) << seed;
    EXPECT_LT(WorstError(busy, absl::Minutes(20), seed), absl::Microseconds(300)) << seed;
  }
}

TEST(ClockOffsetTest, ALongerWayBackShiftsTheClockByHalfOfIt) {
  const Link uneven{.one_way = absl::Milliseconds(1),
                    .jitter = absl::Microseconds(10),
                    .ahead = absl::Seconds(1),
                    .drift = 20e-6,
                    .way_back_longer = 0.3};
  const absl::Duration error = WorstError(uneven, absl::Minutes(2), 1);
  EXPECT_GT(error, absl::Microseconds(130));
  EXPECT_LT(error, absl::Microseconds(170));
}

TEST(ClockOffsetTest, AnotherClockBeginsAnew) {
  ClockOffset clock;
  for (int i = 0; i < 60; ++i) {
    const absl::Time sent = kStart + i * absl::Seconds(1);
    const absl::Duration ahead = absl::Seconds(i < 58 ? 10 : 5000);
    clock.Add(sent, sent + absl::Milliseconds(1), sent + absl::Microseconds(500) + ahead);
  }
  EXPECT_EQ(clock.line()->offset, absl::Seconds(5000));
}

TEST(ClockOffsetTest, AnAnswerBeforeItsRequestIsIgnored) {
  ClockOffset clock;
  clock.Add(kStart, kStart - absl::Milliseconds(1), kStart);
  EXPECT_FALSE(clock.line().has_value());
}

}  // namespace
}  // namespace covey

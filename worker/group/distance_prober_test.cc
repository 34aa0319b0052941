// SPDX-License-Identifier: Apache-2.0
#include "worker/group/distance_prober.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

struct Measured {
  absl::Duration took;
  size_t out_max = 0;  // probes out at once, but for first contacts
};

// A probe to a peer takes what `delay` says for the peer and the number of probes it got before.
template <typename Delay>
Measured Measure(DistanceProber& prober, uint32_t rank, uint32_t size, Delay delay) {
  absl::Time now = absl::UnixEpoch();
  std::multimap<absl::Time, DistanceProber::Probe> out;
  std::vector<int> sent(size);
  Measured measured;
  prober.Begin(now, rank, size);
  while (!prober.done()) {
    for (const DistanceProber::Probe& probe : prober.TakeProbes()) {
      out.insert({now + delay(probe.peer, sent[probe.peer]++), probe});
    }
    size_t rounds = 0;
    for (const auto& [back, probe] : out) rounds += sent[probe.peer] > 1 ? 1 : 0;
    measured.out_max = std::max(measured.out_max, rounds);
    if (out.empty() || out.begin()->first >= prober.NextWake()) {
      now = prober.NextWake();
      prober.Wake(now);
    } else {
      const auto [back, probe] = *out.begin();
      out.erase(out.begin());
      now = back;
      prober.Echo(now, probe.peer, probe.number);
    }
  }
  measured.took = now - absl::UnixEpoch();
  return measured;
}

TEST(DistanceProberTest, TheShortestCountsAndFirstContactDoesNot) {
  DistanceProber prober;
  const Measured measured = Measure(prober, 1, 3, [](uint32_t peer, int before) {
    constexpr int kMicroseconds[] = {10, 300, 100, 200};
    return absl::Microseconds(kMicroseconds[before] * (peer + 1));
  });
  EXPECT_THAT(prober.seconds(), ElementsAre(100e-6f, 0, 300e-6f));
  EXPECT_EQ(measured.took, absl::Microseconds(610 * 3));
  EXPECT_EQ(prober.NextWake(), absl::InfiniteFuture());
}

TEST(DistanceProberTest, FewAreMeasuredAtOnce) {
  DistanceProber prober;
  const Measured measured =
      Measure(prober, 31, 32, [](uint32_t, int) { return absl::Microseconds(500); });
  EXPECT_EQ(measured.out_max, DistanceProber::kPeersAtATime);
  EXPECT_LT(measured.took, absl::Milliseconds(20));
  EXPECT_THAT(prober.seconds(), SizeIs(32));
}

TEST(DistanceProberTest, WhatIsLostIsNotKnownAndDoesNotHoldUpTheRest) {
  DistanceProber prober;
  const Measured measured = Measure(prober, 0, 32, [](uint32_t peer, int before) {
    // Of half of the peers, a probe after first contact; of one, all but that and the next.
    if (peer % 2 == 0 && before == 1) return absl::InfiniteDuration();
    if (peer == 7 && before == 2) return absl::InfiniteDuration();
    return absl::Microseconds(500);
  });
  EXPECT_LT(measured.took, absl::Seconds(1));
  for (uint32_t peer = 1; peer < 32; ++peer) {
    EXPECT_EQ(prober.seconds()[peer], peer % 2 == 0 ? 0 : 500e-6f) << peer;
  }
}

TEST(DistanceProberTest, PeersThatNeverAnswerAreGivenUpTogether) {
  DistanceProber prober;
  const Measured measured =
      Measure(prober, 0, 32, [](uint32_t, int) { return absl::InfiniteDuration(); });
  EXPECT_EQ(measured.took, DistanceProber::kFirstContact);
}

TEST(DistanceProberTest, StrangeEchoesHaveNoEffect) {
  DistanceProber prober;
  prober.Begin(absl::UnixEpoch(), 0, 2);
  const DistanceProber::Probe probe = prober.TakeProbes()[0];
  prober.Echo(absl::UnixEpoch(), 1, probe.number + 1);
  prober.Echo(absl::UnixEpoch(), 0, probe.number);
  prober.Echo(absl::UnixEpoch(), 0, 0);
  prober.Echo(absl::UnixEpoch(), 2, probe.number);
  EXPECT_THAT(prober.TakeProbes(), IsEmpty());
  prober.Echo(absl::UnixEpoch(), 1, probe.number);
  EXPECT_THAT(prober.TakeProbes(), SizeIs(1));
  prober.Echo(absl::UnixEpoch(), 1, probe.number);  // once more
  EXPECT_THAT(prober.TakeProbes(), IsEmpty());
}

}  // namespace
}  // namespace covey::worker

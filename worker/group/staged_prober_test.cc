// SPDX-License-Identifier: Apache-2.0
#include "worker/group/staged_prober.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr StagedProber::Stage kStages[] = {{}, {}, {.bytes = 1000}};

StagedProber::Options Options() {
  return {.stages = kStages,
          .contact_every = absl::Milliseconds(100),
          .contact_max = absl::Milliseconds(350),
          .patience = absl::Milliseconds(50),
          .slow = absl::Milliseconds(10)};
}

absl::Time At(int ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }

std::vector<uint64_t> NumbersOf(const std::vector<StagedProber::Probe>& probes) {
  std::vector<uint64_t> numbers;
  for (const StagedProber::Probe& probe : probes) numbers.push_back(probe.number);
  return numbers;
}

TEST(StagedProberTest, FirstContactIsTriedAgainAndThenGivenUp) {
  StagedProber prober;
  prober.Begin(At(0), 2, Options());
  EXPECT_THAT(NumbersOf(prober.TakeProbes()), ElementsAre(1));
  for (int ms = 100; ms <= 300; ms += 100) {
    EXPECT_EQ(prober.NextWake(), At(ms));
    prober.Wake(At(ms - 1));
    EXPECT_THAT(prober.TakeProbes(), IsEmpty());
    prober.Wake(At(ms));
    EXPECT_THAT(NumbersOf(prober.TakeProbes()), ElementsAre(1 + ms / 100));
  }
  prober.Wake(At(400));
  const std::vector<StagedProber::Probe> next = prober.TakeProbes();
  ASSERT_EQ(next.size(), 1u);
  EXPECT_EQ(next[0].peer, 1u);
  EXPECT_THAT(prober.trips(), IsEmpty());
}

// A round trip may take longer than the interval of the tries.
TEST(StagedProberTest, AnswersToAnyTryOfFirstContactCount) {
  StagedProber prober;
  prober.Begin(At(0), 1, Options());
  prober.Wake(At(100));
  prober.TakeProbes();
  prober.Echo(At(120), 0, 1);
  EXPECT_THAT(NumbersOf(prober.TakeProbes()), ElementsAre(3));
  prober.Echo(At(121), 0, 2);
  EXPECT_THAT(prober.TakeProbes(), IsEmpty()) << "the answer to the second try is of no use";
  prober.Echo(At(122), 0, 3);
  ASSERT_EQ(prober.trips().size(), 1u);
  EXPECT_EQ(prober.trips()[0].took, absl::Milliseconds(2));
}

TEST(StagedProberTest, ALateProbeEndsItsPeerOnly) {
  StagedProber prober;
  prober.Begin(At(0), 2, Options());
  prober.Echo(At(1), 0, 1);
  prober.Echo(At(2), 0, 2);
  prober.TakeProbes();
  prober.Wake(At(52));
  ASSERT_EQ(prober.trips().size(), 2u);
  EXPECT_FALSE(prober.trips()[0].is_late);
  EXPECT_TRUE(prober.trips()[1].is_late);
  EXPECT_EQ(prober.trips()[1].took, absl::Milliseconds(50));
  EXPECT_EQ(prober.TakeProbes()[0].peer, 1u);
  EXPECT_FALSE(prober.done());
}

TEST(StagedProberTest, NumbersGrowOnSoThatOldAnswersCountForNothing) {
  StagedProber prober;
  prober.Begin(At(0), 1, Options());
  prober.Echo(At(1), 0, 1);
  prober.Begin(At(2), 1, Options());
  EXPECT_THAT(NumbersOf(prober.TakeProbes()), ElementsAre(3));
  prober.Echo(At(3), 0, 2);
  EXPECT_THAT(prober.TakeProbes(), IsEmpty());
}

TEST(StagedProberTest, WithoutPeersItIsDone) {
  StagedProber prober;
  EXPECT_TRUE(prober.done());
  prober.Begin(At(0), 0, Options());
  EXPECT_TRUE(prober.done());
  EXPECT_EQ(prober.NextWake(), absl::InfiniteFuture());
}

}  // namespace
}  // namespace covey::worker

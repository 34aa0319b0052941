// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/process/local_clock.h"

#include <gtest/gtest.h>

#include "common/base/random.h"

namespace covey::sim {
namespace {

constexpr absl::Duration kTick = absl::Nanoseconds(1);

TEST(LocalClockTest, WithoutDriftIsTheSimulators) {
  const LocalClock clock(0);
  const absl::Time now = absl::UnixEpoch() + absl::Seconds(3) + absl::Nanoseconds(1) / 4;
  EXPECT_EQ(clock.Read(now), now);
  EXPECT_EQ(clock.WhenItReads(now), now);
}

TEST(LocalClockTest, GainsOrLosesItsDrift) {
  const absl::Time now = absl::UnixEpoch() + absl::Seconds(LocalClock::kParts);
  EXPECT_EQ(LocalClock(7).Read(now), now + absl::Seconds(7));
  EXPECT_EQ(LocalClock(-7).Read(now), now - absl::Seconds(7));
}

TEST(LocalClockTest, ReadsWhatIsWaitedForAtTheFirstPossibleTime) {
  Random random(1);
  for (const int64_t drift :
       {-LocalClock::kDriftMax, int64_t{-1}, int64_t{3}, LocalClock::kDriftMax}) {
    const LocalClock clock(drift);
    for (int i = 0; i < 10'000; ++i) {
      const absl::Time local = absl::UnixEpoch() + absl::Hours(2) * random.Uniform();
      const absl::Time when = clock.WhenItReads(local);
      EXPECT_GE(clock.Read(when), local);
      EXPECT_LT(clock.Read(when - kTick), local);
    }
  }
}

TEST(LocalClockTest, KeepsWhatIsNeverAndWhatIsOver) {
  const LocalClock clock(5);
  EXPECT_EQ(clock.WhenItReads(absl::InfiniteFuture()), absl::InfiniteFuture());
  EXPECT_LE(clock.WhenItReads(absl::InfinitePast()), absl::UnixEpoch());
}

TEST(LocalClockTest, StandsStillWhereThatIsPlanted) {
  LocalClock clock(0);
  clock.StandStill(absl::Seconds(5));
  const absl::Time now = absl::UnixEpoch() + absl::Seconds(20);
  EXPECT_EQ(clock.Read(now), now - absl::Seconds(5));
  EXPECT_EQ(clock.WhenItReads(now - absl::Seconds(5)), now);
}

}  // namespace
}  // namespace covey::sim

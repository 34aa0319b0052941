// SPDX-License-Identifier: Apache-2.0
#include "common/net/round_trip.h"

#include <gtest/gtest.h>

namespace covey {
namespace {

constexpr absl::Duration kShortest = absl::Milliseconds(50);
constexpr absl::Duration kLongest = absl::Seconds(8);

absl::Duration Patience(const RoundTrip& round_trip) {
  return round_trip.Patience(kShortest, kLongest);
}

TEST(RoundTrip, IsPatientWithinItsLimits) {
  RoundTrip round_trip;
  EXPECT_EQ(Patience(round_trip), kShortest) << "nothing is known";
  round_trip.NoteFirst(absl::Milliseconds(10));
  EXPECT_EQ(Patience(round_trip), kShortest);
  round_trip.NoteFirst(absl::Milliseconds(300));
  EXPECT_EQ(Patience(round_trip), absl::Milliseconds(600));
  round_trip.NoteFirst(absl::Minutes(1));
  EXPECT_EQ(Patience(round_trip), kLongest);
}

TEST(RoundTrip, FollowsLongerTimesAtOnceAndShorterOnesSlowly) {
  RoundTrip round_trip;
  round_trip.NoteFirst(absl::Milliseconds(100));
  round_trip.NoteFirst(absl::Seconds(2));
  EXPECT_EQ(Patience(round_trip), absl::Seconds(4));
  round_trip.NoteFirst(absl::Milliseconds(100));
  EXPECT_GT(Patience(round_trip), absl::Seconds(3)) << "one quick answer among slow ones";
  for (int i = 0; i < 40; ++i) round_trip.NoteFirst(absl::Milliseconds(100));
  EXPECT_LT(Patience(round_trip), absl::Milliseconds(250));
  EXPECT_GE(Patience(round_trip), absl::Milliseconds(200));
}

// Otherwise a reply that takes longer than the patience would never change the estimate.
TEST(RoundTrip, FollowsEvenWhenEveryRequestIsRepeated) {
  RoundTrip round_trip;
  int requests = 0;
  for (; Patience(round_trip) < absl::Seconds(3) && requests < 1000; ++requests) {
    round_trip.NoteRepeated(absl::Seconds(3), kShortest);
  }
  EXPECT_LT(requests, 60);
}

// The reply to the retry of a lost message: it shows how long the retry was delayed.
TEST(RoundTrip, TimesOfRepeatsDoNotAddUp) {
  RoundTrip round_trip;
  for (int i = 0; i < 1000; ++i) {
    round_trip.NoteFirst(absl::Milliseconds(1));
    // Each second message is lost, and so are its first two retries.
    round_trip.NoteRepeated(7 * Patience(round_trip) + absl::Milliseconds(1), kShortest);
    ASSERT_LE(Patience(round_trip), 2 * kShortest) << i;
  }
}

TEST(RoundTrip, ARepeatSaysAtMostTwiceWhatWasKnown) {
  RoundTrip round_trip;
  round_trip.NoteFirst(absl::Milliseconds(80));
  round_trip.NoteRepeated(absl::Hours(1), kShortest);
  EXPECT_EQ(Patience(round_trip), absl::Milliseconds(180));
  RoundTrip unknown;
  unknown.NoteRepeated(absl::Hours(1), kShortest);
  EXPECT_LE(Patience(unknown), kShortest);
}

}  // namespace
}  // namespace covey

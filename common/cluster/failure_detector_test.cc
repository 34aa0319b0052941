// SPDX-License-Identifier: Apache-2.0
#include "common/cluster/failure_detector.h"

#include <algorithm>

#include "common/base/random.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

constexpr absl::Duration kBeat = absl::Milliseconds(500);
const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

// Beats every 500 ms that are lost with probability `loss` and late by up to `jitter`.
class LossyNode {
 public:
  LossyNode(double loss, absl::Duration jitter, uint64_t seed)
      : loss_(loss), jitter_(jitter), random_(seed) {}

  // When its next beat arrives.
  absl::Time Next() {
    do {
      sent_ += kBeat;
    } while (random_.Chance(loss_));
    arrived_ = std::max(arrived_, sent_ + jitter_ * random_.Uniform());
    return arrived_;
  }

 private:
  double loss_;
  absl::Duration jitter_;
  Random random_;
  absl::Time sent_ = kStart;
  absl::Time arrived_ = kStart;
};

// Feeds beats until `end`; counts how often the node was dead in between.
int FalseDeaths(FailureDetector& detector, LossyNode& node, absl::Time end) {
  int deaths = 0;
  for (absl::Time at = node.Next(); at < end; at = node.Next()) {
    if (at >= detector.DeadAt()) ++deaths;
    detector.Beat(at);
  }
  return deaths;
}

TEST(FailureDetectorTest, CleanNetworkConvictsAtTheFloor) {
  FailureDetector detector({}, kStart);
  LossyNode node(0, absl::Milliseconds(50), 1);
  EXPECT_EQ(FalseDeaths(detector, node, kStart + absl::Hours(24)), 0);
  const absl::Time last = detector.DeadAt() - absl::Milliseconds(2500);
  EXPECT_EQ(detector.Silence(last + absl::Seconds(1)), absl::Seconds(1));
  EXPECT_EQ(detector.DeadAt(), last + absl::Milliseconds(2500));
  EXPECT_GE(detector.Suspicion(detector.DeadAt()), 8);
}

TEST(FailureDetectorTest, FewLostBeatsStillConvictWithinThreeSeconds) {
  FailureDetector detector({}, kStart);
  LossyNode node(0.01, absl::Milliseconds(100), 2);
  EXPECT_EQ(FalseDeaths(detector, node, kStart + absl::Hours(1)), 0);
  EXPECT_LE(detector.Silence(detector.DeadAt()), absl::Seconds(3));
}

TEST(FailureDetectorTest, NoFalseDeathInADayOfThirtyPercentLoss) {
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    FailureDetector detector({}, kStart);
    LossyNode node(0.3, absl::Milliseconds(400), seed);
    // The estimate needs some time to learn of the loss.
    FalseDeaths(detector, node, kStart + absl::Seconds(60));
    EXPECT_EQ(FalseDeaths(detector, node, kStart + absl::Hours(24)), 0) << "seed " << seed;
    // A real death is still found.
    EXPECT_LE(detector.Silence(detector.DeadAt()), absl::Seconds(13.5)) << "seed " << seed;
  }
}

TEST(FailureDetectorTest, GraceAndExcusedPausesAreNoSilence) {
  FailureDetector detector({}, kStart + absl::Seconds(10));
  EXPECT_EQ(detector.Silence(kStart), absl::ZeroDuration());
  EXPECT_EQ(detector.DeadAt(), kStart + absl::Seconds(12.5));
  detector.Beat(kStart + absl::Seconds(1));  // a beat within the grace: silence counts from here
  EXPECT_EQ(detector.DeadAt(), kStart + absl::Seconds(3.5));
  detector.DiscountPause(absl::Seconds(20));
  EXPECT_EQ(detector.DeadAt(), kStart + absl::Seconds(23.5));
}

}  // namespace
}  // namespace covey

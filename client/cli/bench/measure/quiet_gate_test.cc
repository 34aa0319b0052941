// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measure/quiet_gate.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace covey::cli {
namespace {

// A machine of two cores with 100 ticks per second each, whose time passes only when told.
class FakeMachine {
 public:
  QuietGate::Machine AsMachine() {
    return {.read = [this] { return ticks_; },
            .now = [this] { return now_; },
            .wait =
                [this](absl::Duration duration) {
                  slept_ += duration;
                  Pass(duration);
                }};
  }

  // `duration` passes; the measured processes use `own_share` of the machine.
  void Pass(absl::Duration duration, double own_share = 0) {
    now_ += duration;
    const double ticks = absl::ToDoubleSeconds(duration) * 200;
    ticks_.total += static_cast<uint64_t>(ticks);
    ticks_.own += static_cast<uint64_t>(ticks * own_share);
    ticks_.busy += static_cast<uint64_t>(ticks * (own_share + foreign_share));
    ticks_.steal += static_cast<uint64_t>(ticks * steal_share);
    if (noise_left_ > absl::ZeroDuration()) {
      noise_left_ -= duration;
      if (noise_left_ <= absl::ZeroDuration()) foreign_share = 0;
    }
  }
  void BeNoisyFor(absl::Duration duration) {
    foreign_share = 0.5;
    noise_left_ = duration;
  }

  absl::Duration slept() const { return slept_; }

  double foreign_share = 0;
  double steal_share = 0;

 private:
  MachineTicks ticks_;
  absl::Time now_ = absl::UnixEpoch();
  absl::Duration slept_;
  absl::Duration noise_left_;
};

using Verdict = QuietGate::Verdict;

TEST(QuietGateTest, ObservesOneWindowBeforeTheFirstRepetitionAndNoneAfterQuietOnes) {
  FakeMachine machine;
  QuietGate gate({}, machine.AsMachine());
  for (int i = 0; i < 5; ++i) {
    gate.AwaitQuiet();
    machine.Pass(absl::Seconds(1), /*own_share=*/0.9);
    EXPECT_EQ(gate.Judge(), Verdict::kQuiet);
  }
  EXPECT_EQ(machine.slept(), absl::Milliseconds(300));
  EXPECT_EQ(gate.counts().kept, 5u);
  EXPECT_EQ(gate.counts().waited, absl::ZeroDuration());
}

TEST(QuietGateTest, WaitsUntilOthersAreDone) {
  FakeMachine machine;
  machine.BeNoisyFor(absl::Seconds(2));
  QuietGate gate({}, machine.AsMachine());
  gate.AwaitQuiet();
  EXPECT_GE(machine.slept(), absl::Seconds(2));
  EXPECT_LE(machine.slept(), absl::Seconds(3));
}

TEST(QuietGateTest, RejectsARepetitionThatWasDisturbed) {
  FakeMachine machine;
  QuietGate gate({}, machine.AsMachine());
  gate.AwaitQuiet();
  machine.foreign_share = 0.2;
  machine.Pass(absl::Seconds(1), 0.8);
  EXPECT_EQ(gate.Judge(), Verdict::kRepeat);
  EXPECT_NEAR(gate.judged().foreign, 0.2, 1e-9);
  machine.foreign_share = 0;
  gate.AwaitQuiet();
  machine.Pass(absl::Seconds(1), 0.8);
  EXPECT_EQ(gate.Judge(), Verdict::kQuiet);
  EXPECT_EQ(gate.counts().rejected, 1u);
  EXPECT_EQ(gate.counts().kept, 1u);
}

TEST(QuietGateTest, AHypervisorThatTakesTimeIsNoise) {
  FakeMachine machine;
  QuietGate gate({}, machine.AsMachine());
  gate.AwaitQuiet();
  machine.steal_share = 0.1;
  machine.Pass(absl::Seconds(1), 0.8);
  EXPECT_EQ(gate.Judge(), Verdict::kRepeat);
}

TEST(QuietGateTest, KeepsNoisyRepetitionsOnceTheBudgetIsUsedUp) {
  FakeMachine machine;
  machine.foreign_share = 0.3;
  QuietGate gate({.budget = absl::Seconds(3)}, machine.AsMachine());
  gate.AwaitQuiet();
  EXPECT_LE(machine.slept(), absl::Seconds(4));
  machine.Pass(absl::Seconds(1), 0.5);
  EXPECT_EQ(gate.Judge(), Verdict::kKeepNoisy);
  EXPECT_EQ(gate.counts().noisy, 1u);
  EXPECT_GT(gate.counts().foreign_share_max, 0.2);
}

TEST(QuietGateTest, NoiseThatComesBackDuringEachRepetitionEnds) {
  FakeMachine machine;
  QuietGate gate({.budget = absl::Seconds(5)}, machine.AsMachine());
  int repetitions = 0;
  Verdict verdict = Verdict::kRepeat;
  while (verdict == Verdict::kRepeat && repetitions < 100) {
    machine.foreign_share = 0;
    gate.AwaitQuiet();
    machine.foreign_share = 0.4;
    machine.Pass(absl::Seconds(1), 0.5);
    verdict = gate.Judge();
    ++repetitions;
  }
  EXPECT_EQ(verdict, Verdict::kKeepNoisy);
  EXPECT_LE(repetitions, 6);
}

}  // namespace
}  // namespace covey::cli

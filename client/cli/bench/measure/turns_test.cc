// SPDX-License-Identifier: Apache-2.0
#include "client/cli/bench/measure/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/status/status.h"

namespace covey::cli {
namespace {

using ::testing::ElementsAre;

class TurnsTest : public ::testing::Test {
 protected:
  // Notes its name at each turn and measures 1, 2, 3, …
  Contender Named(const std::string& name, bool has_cost = false) {
    return {.rows = {Figure{.what = name, .transport = "tcp", .bytes = 4, .unit = "GB/s"}},
            .measure = [this, name, count = 0]() mutable -> absl::StatusOr<Sample> {
              order_ += name;
              usage_.user_seconds += 0.5;
              usage_.page_faults += 6;
              now_ += absl::Seconds(1);
              return Sample{
                  .values = {static_cast<double>(count++)}, .operations = 2, .bytes = 1000000000};
            },
            .has_cost = has_cost};
  }
  QuietGate Gate(double foreign_share_max = 0.08) {
    return QuietGate({.foreign_share_max = foreign_share_max},
                     {.read = [this] { return ticks_; },
                      .now = [this] { return now_; },
                      .wait = [this](absl::Duration duration) { now_ += duration; }});
  }
  CostMeter Meter() {
    return {.usage = [this] { return usage_; },
            .memory = [](Cost& cost) { cost.server_pss_bytes = 77; }};
  }

  std::string order_;
  Usage usage_;
  MachineTicks ticks_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(TurnsTest, EachRepetitionRunsAllAndBeginsWithAnother) {
  QuietGate gate = Gate();
  const auto figures =
      MeasureInTurns({Named("a"), Named("b"), Named("c")}, {.repetitions = 4}, gate, Meter());
  ASSERT_TRUE(figures.ok());
  EXPECT_EQ(order_,
            "abc"
            "abc"
            "bca"
            "cab"
            "abc");  // the first round warms up
  ASSERT_EQ(figures->size(), 3u);
  EXPECT_EQ((*figures)[1].what, "b");
  EXPECT_THAT((*figures)[1].repetitions, ElementsAre(1, 2, 3, 4));
  EXPECT_FALSE((*figures)[1].cost.has_value());
}

TEST_F(TurnsTest, CostIsThatOfTheRepetitionsWithoutTheWarmUp) {
  QuietGate gate = Gate();
  const auto figures =
      MeasureInTurns({Named("a", true), Named("b")}, {.repetitions = 3}, gate, Meter());
  ASSERT_TRUE(figures.ok());
  ASSERT_TRUE((*figures)[0].cost.has_value());
  EXPECT_EQ((*figures)[0].cost->user_core_seconds_per_gb, 0.5);
  EXPECT_EQ((*figures)[0].cost->page_faults_per_operation, 3);
  EXPECT_EQ((*figures)[0].cost->server_pss_bytes, 77u);
}

TEST_F(TurnsTest, RejectedRepetitionsLeaveNothingBehind) {
  QuietGate gate = Gate();
  bool disturbed = false;
  Contender contender = Named("a");
  contender.measure = [this, &disturbed, inner = contender.measure]() {
    ticks_.total += 100;
    // The second turn: the first repetition after the warm-up.
    if (order_ == "a" && !disturbed) {
      disturbed = true;
      ticks_.busy += 50;
    }
    return inner();
  };
  const auto figures = MeasureInTurns({contender}, {.repetitions = 2}, gate, Meter());
  ASSERT_TRUE(figures.ok());
  EXPECT_THAT((*figures)[0].repetitions, ElementsAre(2, 3));
  EXPECT_THAT((*figures)[0].foreign_shares, ElementsAre(0, 0));
  EXPECT_EQ(gate.counts().rejected, 1u);
}

TEST_F(TurnsTest, AFailureEndsTheMeasurement) {
  QuietGate gate = Gate();
  Contender broken = Named("a");
  broken.measure = []() -> absl::StatusOr<Sample> { return absl::UnavailableError("gone"); };
  EXPECT_EQ(MeasureInTurns({broken}, {}, gate, Meter()).status().message(), "gone");
}

}  // namespace
}  // namespace covey::cli

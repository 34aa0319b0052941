// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_timer.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

absl::Time At(int64_t ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }
constexpr absl::Duration Ms(int64_t ms) { return absl::Milliseconds(ms); }

TEST(StepTimerTest, WaitingIsDividedByWhatTheTensorsBucketsWaitedFor) {
  AwayClock away;
  StepTimer timer(2, away);
  timer.Take(At(0));
  timer.server_times(0).Begin(At(30));
  timer.server_times(0).End(At(60));
  timer.Waited(0, At(50), At(80));
  timer.server_times(1).Begin(At(0));
  timer.server_times(1).End(At(70));
  timer.Waited(1, At(90), At(100));
  const StepReport report = timer.Take(At(200));
  EXPECT_EQ(report.wait, Ms(40));
  EXPECT_EQ(report.servers, Ms(10));
  EXPECT_EQ(report.compute, Ms(160));
  EXPECT_EQ(report.input, Ms(0)) << "a program that says nothing computes";
  EXPECT_EQ(timer.Take(At(300)).wait, Ms(0)) << "each report begins from zero";
}

TEST(StepTimerTest, InputIsPartOfTheProgramsOwnTime) {
  AwayClock away;
  StepTimer timer(1, away);
  timer.Take(At(0));
  timer.BeginInput(At(10));
  timer.EndInput(At(15));
  timer.BeginInput(At(20));
  timer.EndInput(At(22));
  const StepReport report = timer.Take(At(100));
  EXPECT_EQ(report.input, Ms(7));
  EXPECT_EQ(report.compute, Ms(100));
}

TEST(StepTimerTest, WaitingDuringInputIsWaiting) {
  AwayClock away;
  StepTimer timer(1, away);
  timer.Take(At(0));
  timer.Waited(0, At(1), At(5));
  timer.BeginInput(At(10));
  timer.Waited(0, At(20), At(50));
  timer.EndInput(At(60));
  const StepReport report = timer.Take(At(100));
  EXPECT_EQ(report.wait, Ms(34));
  EXPECT_EQ(report.input, Ms(20));
  EXPECT_EQ(report.compute, Ms(66));
}

TEST(StepTimerTest, InputThatAReportInterruptsBelongsToBothSteps) {
  AwayClock away;
  StepTimer timer(1, away);
  timer.Take(At(0));
  timer.BeginInput(At(90));
  EXPECT_EQ(timer.Take(At(100)).input, Ms(10));
  timer.EndInput(At(130));
  EXPECT_EQ(timer.Take(At(200)).input, Ms(30));
}

TEST(StepTimerTest, TimeAwayIsNotTheProgramsOwn) {
  AwayClock away;
  StepTimer timer(1, away);
  timer.Take(At(0));
  timer.BeginInput(At(100));
  away.Begin(At(100), At(1000));
  timer.EndInput(At(150));
  away.End(At(700));
  timer.Waited(0, At(750), At(780));
  const StepReport report = timer.Take(At(800));
  EXPECT_EQ(report.compute, Ms(170));
  EXPECT_EQ(report.wait, Ms(30));
  EXPECT_EQ(report.input, Ms(0));
  EXPECT_EQ(timer.Take(At(900)).compute, Ms(100)) << "each report begins from zero";
}

TEST(StepTimerTest, TimeAwayEndsWithWhatWasAnnounced) {
  AwayClock away;
  StepTimer timer(1, away);
  timer.Take(At(0));
  away.Begin(At(100), At(400));
  timer.server_times(0).Begin(At(0));
  timer.server_times(0).End(At(500));
  timer.Waited(0, At(200), At(500));
  StepReport report = timer.Take(At(600));
  EXPECT_EQ(report.wait, Ms(100)) << "from the end of the announced time on";
  EXPECT_EQ(report.servers, Ms(100));
  EXPECT_EQ(report.compute, Ms(200));
  EXPECT_FALSE(away.is_away(At(600)));
  // Announced again, it begins again.
  away.Begin(At(700), At(900));
  EXPECT_TRUE(away.is_away(At(800)));
  away.Begin(At(800), At(2000));
  away.End(At(1000));
  report = timer.Take(At(1000));
  EXPECT_EQ(report.compute, Ms(100));
}

}  // namespace
}  // namespace covey::worker

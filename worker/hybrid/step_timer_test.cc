// SPDX-License-Identifier: Apache-2.0
#include "worker/hybrid/step_timer.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace covey::worker {
namespace {

absl::Time At(int64_t ms) { return absl::UnixEpoch() + absl::Milliseconds(ms); }
constexpr absl::Duration Ms(int64_t ms) { return absl::Milliseconds(ms); }

TEST(StepTimerTest, WaitingIsDividedByWhatTheTensorsBucketsWaitedFor) {
  StepTimer timer(2);
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
  StepTimer timer(1);
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
  StepTimer timer(1);
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
  StepTimer timer(1);
  timer.Take(At(0));
  timer.BeginInput(At(90));
  EXPECT_EQ(timer.Take(At(100)).input, Ms(10));
  timer.EndInput(At(130));
  EXPECT_EQ(timer.Take(At(200)).input, Ms(30));
}

}  // namespace
}  // namespace covey::worker

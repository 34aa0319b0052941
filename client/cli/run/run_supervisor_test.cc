// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/run_supervisor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;
using Role = RunSupervisor::Role;

constexpr absl::Duration kGrace = absl::Seconds(5);
constexpr ChildExit kKilled = {.signal = SIGKILL};

// A scheduler (0), a server (1), and two groups of two workers (2, 3 and 4, 5).
class RunSupervisorTest : public ::testing::Test {
 protected:
  RunSupervisorTest() {
    supervisor_.Add(Role::kScheduler, 0, "scheduler", 100);
    supervisor_.Add(Role::kServer, 0, "server-0", 101);
    for (uint32_t rank = 0; rank < 4; ++rank) {
      supervisor_.Add(Role::kWorker, rank / 2, absl::StrCat("worker-", rank), 102 + rank);
    }
  }

  // "2:15 3:9" = SIGTERM to child 2, SIGKILL to child 3.
  std::string Signals() {
    return absl::StrJoin(supervisor_.TakeSignals(now_), " ",
                         [](std::string* out, const RunSupervisor::SignalTo& sent) {
                           absl::StrAppend(out, sent.child, ":", sent.signal);
                         });
  }
  void Exit(size_t child, const ChildExit& exit = {}) { supervisor_.Exited(child, exit, now_); }

  absl::Time now_ = absl::UnixEpoch();
  RunSupervisor supervisor_{kGrace};
};

TEST_F(RunSupervisorTest, StopsServersThenTheSchedulerWhenAllWorkersAreDone) {
  supervisor_.AllStarted();
  for (const size_t worker : {2, 3, 4}) Exit(worker);
  EXPECT_EQ(Signals(), "");
  EXPECT_FALSE(supervisor_.stopping());
  Exit(5);
  EXPECT_TRUE(supervisor_.stopping());
  EXPECT_EQ(Signals(), "1:15");
  EXPECT_EQ(Signals(), "");
  Exit(1);
  EXPECT_EQ(Signals(), "0:15");
  EXPECT_FALSE(supervisor_.finished());
  Exit(0);
  EXPECT_TRUE(supervisor_.finished());
  EXPECT_EQ(supervisor_.outcome(), absl::OkStatus());
}

TEST_F(RunSupervisorTest, ABrokenGroupEndsByItselfBeforeTheOthersAreDrained) {
  supervisor_.AllStarted();
  Exit(3, kKilled);
  EXPECT_EQ(Signals(), "");
  now_ += absl::Seconds(3);
  Exit(2, {.code = 1});
  EXPECT_EQ(Signals(), "4:15 5:15");
  Exit(4);
  Exit(5);
  EXPECT_EQ(Signals(), "1:15");
  EXPECT_EQ(supervisor_.outcome().message(), "worker-1 (pid 103) killed by signal 9 (Killed)");
}

TEST_F(RunSupervisorTest, SurvivorsThatNoticeNothingAreStopped) {
  supervisor_.AllStarted();
  Exit(3, kKilled);
  now_ += RunSupervisor::kSurvivorsMax;
  EXPECT_EQ(supervisor_.NextWake(), now_);
  EXPECT_EQ(Signals(), "2:15");
  now_ += kGrace;
  EXPECT_EQ(Signals(), "2:9");
  EXPECT_EQ(supervisor_.NextWake(), absl::InfiniteFuture());
  Exit(2, kKilled);
  EXPECT_EQ(Signals(), "4:15 5:15");
}

TEST_F(RunSupervisorTest, AServerThatEndsEndsTheRun) {
  supervisor_.AllStarted();
  Exit(1);  // Even with code 0: it was not told to end.
  EXPECT_EQ(Signals(), "2:15 3:15 4:15 5:15");
  for (const size_t worker : {2, 3, 4, 5}) Exit(worker, {.code = 1});
  EXPECT_EQ(Signals(), "0:15");
  EXPECT_EQ(supervisor_.outcome().message(), "server-0 (pid 101) exited with code 0");
}

TEST_F(RunSupervisorTest, WorkersWithoutASchedulerAreNotGivenTimeToLeave) {
  supervisor_.AllStarted();
  Exit(0, kKilled);
  EXPECT_EQ(Signals(), "2:15 3:15 4:15 5:15");
  now_ += RunSupervisor::kAloneMax;
  EXPECT_EQ(Signals(), "2:9 3:9 4:9 5:9");
  for (const size_t worker : {2, 3, 4, 5}) Exit(worker, kKilled);
  EXPECT_EQ(Signals(), "1:15");
  now_ += RunSupervisor::kAloneMax;
  EXPECT_EQ(Signals(), "") << "servers have files to remove";
  EXPECT_EQ(supervisor_.outcome().message(), "scheduler (pid 100) killed by signal 9 (Killed)");
}

TEST_F(RunSupervisorTest, TheFirstInterruptionDrainsAndTheSecondKills) {
  supervisor_.AllStarted();
  supervisor_.Interrupt(SIGINT, now_);
  EXPECT_EQ(Signals(), "2:15 3:15 4:15 5:15");
  EXPECT_TRUE(supervisor_.WasStopped(2));
  EXPECT_FALSE(supervisor_.WasStopped(1));
  Exit(2);
  supervisor_.Interrupt(SIGINT, now_);
  EXPECT_EQ(Signals(), "0:9 1:9 3:9 4:9 5:9");
  EXPECT_THAT(supervisor_.outcome().message(), HasSubstr("SIGINT"));
}

TEST_F(RunSupervisorTest, InterruptionDoesNotWaitForABrokenGroup) {
  supervisor_.AllStarted();
  Exit(3, kKilled);
  supervisor_.Interrupt(SIGTERM, now_);
  EXPECT_EQ(Signals(), "2:15 4:15 5:15");
  EXPECT_THAT(supervisor_.outcome().message(), HasSubstr("worker-1"));
}

TEST_F(RunSupervisorTest, InterruptionAfterTheWorkIsDoneSpoilsNothing) {
  supervisor_.AllStarted();
  for (const size_t worker : {2, 3, 4, 5}) Exit(worker);
  supervisor_.Interrupt(SIGINT, now_);
  EXPECT_EQ(supervisor_.outcome(), absl::OkStatus());
}

TEST_F(RunSupervisorTest, FailureWhileStartingStopsWhoeverWasStarted) {
  Exit(2);  // All workers so far would be done, but others have yet to start.
  supervisor_.Fail("the scheduler wrote no port", now_);
  EXPECT_EQ(Signals(), "3:15 4:15 5:15");
  for (const size_t worker : {3, 4, 5}) Exit(worker);
  EXPECT_EQ(Signals(), "1:15");
  now_ += kGrace;
  EXPECT_EQ(Signals(), "1:9");
  Exit(1, kKilled);
  EXPECT_EQ(Signals(), "0:15");
  Exit(0);
  EXPECT_TRUE(supervisor_.finished());
  EXPECT_EQ(supervisor_.outcome().message(), "the scheduler wrote no port");
}

class GoingOnTest : public RunSupervisorTest {
 protected:
  GoingOnTest() {
    supervisor_ = RunSupervisor(kGrace, RunSupervisor::OnLoss::kGoOn);
    supervisor_.Add(Role::kScheduler, 0, "scheduler", 100);
    supervisor_.Add(Role::kServer, 0, "server-0", 101);
    supervisor_.Add(Role::kServer, 0, "server-1", 102);
    supervisor_.Add(Role::kWorker, 0, "worker-0", 103);
    supervisor_.Add(Role::kWorker, 0, "worker-1", 104);
    supervisor_.AllStarted();
  }
};

TEST_F(GoingOnTest, LosesOneServerAndOneWorkerAndEndsWell) {
  Exit(1, kKilled);
  Exit(4, kKilled);
  EXPECT_EQ(Signals(), "");
  EXPECT_TRUE(supervisor_.WasLost(1));
  EXPECT_TRUE(supervisor_.WasLost(4));
  Exit(3);
  EXPECT_EQ(Signals(), "2:15");
  Exit(2);
  EXPECT_EQ(Signals(), "0:15");
  Exit(0);
  EXPECT_TRUE(supervisor_.finished());
  EXPECT_TRUE(supervisor_.outcome().ok());
}

TEST_F(GoingOnTest, AServerThatHasDrainedIsNoLoss) {
  Exit(1);
  EXPECT_FALSE(supervisor_.WasLost(1));
  EXPECT_FALSE(supervisor_.stopping());
}

TEST_F(GoingOnTest, FailsWithTheFirstLossWhenNobodyIsLeft) {
  Exit(4, {.code = 1});
  Exit(3, kKilled);
  EXPECT_EQ(Signals(), "1:15 2:15");
  EXPECT_EQ(supervisor_.outcome().message(), "worker-1 (pid 104) exited with code 1");
}

TEST_F(GoingOnTest, CannotDoWithoutTheLastServer) {
  Exit(1, kKilled);
  Exit(2, kKilled);
  EXPECT_EQ(Signals(), "3:15 4:15");
  EXPECT_EQ(supervisor_.outcome().message(), "server-0 (pid 101) killed by signal 9 (Killed)");
}

TEST_F(GoingOnTest, WaitsForWhoeverTakesAPlace) {
  supervisor_.Replace(4);
  Exit(4, kKilled);
  EXPECT_FALSE(supervisor_.WasLost(4));
  supervisor_.Replace(3);
  Exit(3, kKilled);
  EXPECT_FALSE(supervisor_.stopping()) << "two workers are to come";
  EXPECT_EQ(supervisor_.Add(Role::kWorker, 0, "worker-0", 105), 5u);
  EXPECT_EQ(supervisor_.Add(Role::kWorker, 0, "worker-1", 106), 6u);
  Exit(5);
  Exit(6);
  EXPECT_EQ(Signals(), "1:15 2:15");
  EXPECT_TRUE(supervisor_.outcome().ok());
}

TEST_F(GoingOnTest, WhoeverIsNotReplacedAfterAllIsALoss) {
  supervisor_.Replace(4);
  Exit(4, kKilled);
  Exit(3);
  EXPECT_FALSE(supervisor_.stopping());
  supervisor_.GiveUpWorkers(now_);
  EXPECT_TRUE(supervisor_.WasLost(4));
  EXPECT_EQ(Signals(), "1:15 2:15");
  EXPECT_TRUE(supervisor_.outcome().ok());
}

TEST_F(GoingOnTest, TheLastOneThatCannotBeReplacedEndsTheRun) {
  supervisor_.Replace(3);
  Exit(3, kKilled);
  Exit(4, kKilled);
  EXPECT_TRUE(supervisor_.WasLost(4)) << "worker-0 comes back";
  supervisor_.GiveUp("worker-0", now_);
  EXPECT_EQ(Signals(), "1:15 2:15");
  EXPECT_EQ(supervisor_.outcome().message(), "worker-1 (pid 104) killed by signal 9 (Killed)");
}

TEST_F(GoingOnTest, ASchedulerIsReplacedAndWithoutAReplacementMissed) {
  supervisor_.Replace(0);
  Exit(0, kKilled);
  EXPECT_FALSE(supervisor_.stopping());
  EXPECT_EQ(supervisor_.Add(Role::kScheduler, 0, "scheduler", 105), 5u);
  EXPECT_EQ(Signals(), "");
  Exit(5, {.code = 7});
  EXPECT_EQ(Signals(), "3:15 4:15");
  EXPECT_EQ(supervisor_.outcome().message(), "scheduler (pid 105) exited with code 7");
}

TEST_F(GoingOnTest, WhoeverDiesWhenTheWorkIsDoneSpoilsNothing) {
  Exit(3);
  Exit(4);
  EXPECT_TRUE(supervisor_.idle());
  for (const size_t child : {0, 1, 2}) Exit(child, kKilled);
  EXPECT_TRUE(supervisor_.finished());
  EXPECT_TRUE(supervisor_.outcome().ok());
}

TEST_F(GoingOnTest, AWorkerThatFailsAfterOthersHaveEndedWellIsALoss) {
  Exit(3);
  Exit(4, {.code = 1});
  EXPECT_TRUE(supervisor_.WasLost(4));
  EXPECT_TRUE(supervisor_.outcome().ok());
}

}  // namespace
}  // namespace covey::cli

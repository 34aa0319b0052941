// SPDX-License-Identifier: Apache-2.0
#include "common/runtime/process_main.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdlib>
#include <thread>

#include "absl/synchronization/mutex.h"

namespace covey {
namespace {

// Each test in a process of its own: signal masks and malloc options belong to the process.
TEST(ProcessMainDeathTest, ReturnsTheSignal) {
  EXPECT_EXIT(
      {
        InitProcess("test");
        kill(getpid(), SIGINT);
        std::exit(WaitForTermination() == SIGINT ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessMainDeathTest, ARequestFromAnotherThreadIsSigterm) {
  EXPECT_EXIT(
      {
        InitProcess("test");
        std::thread([] { RequestTermination(); }).join();
        std::exit(WaitForTermination(absl::Seconds(20)) == SIGTERM ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessMainDeathTest, GivesUpAfterTheTimeout) {
  EXPECT_EXIT(
      {
        InitProcess("test");
        std::exit(WaitForTermination(absl::Milliseconds(1)).has_value() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessMainDeathTest, ASecondCtrlCKills) {
  for (const int first : {SIGINT, SIGTERM}) {
    EXPECT_EXIT(
        {
          InitProcess("test");
          kill(getpid(), first);
          WaitForTermination();
          kill(getpid(), SIGINT);
          std::exit(1);
        },
        testing::KilledBySignal(SIGINT), "");
  }
}

TEST(ProcessMainDeathTest, AProcessThatIsAskedTwiceEndsInOrder) {
  EXPECT_EXIT(
      {
        InitProcess("test");
        kill(getpid(), SIGTERM);
        WaitForTermination();
        kill(getpid(), SIGTERM);
        RequestTermination();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessMainDeathTest, AHangupCallsAndEndsNothing) {
  EXPECT_EXIT(
      {
        HoldHangups();
        InitProcess("test");
        int calls = 0;
        kill(getpid(), SIGHUP);
        WaitForTermination(absl::Milliseconds(1), [&] { ++calls; });
        kill(getpid(), SIGHUP);
        kill(getpid(), SIGTERM);
        const bool ended =
            WaitForTermination(absl::InfiniteDuration(), [&] { ++calls; }) == SIGTERM;
        // Not even now.
        kill(getpid(), SIGHUP);
        std::exit(ended && calls == 2 ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(ProcessMainDeathTest, AHangupEndsAProgramThatIsNoService) {
  EXPECT_EXIT(
      {
        InitProcess("test");
        kill(getpid(), SIGHUP);
        std::exit(1);
      },
      testing::KilledBySignal(SIGHUP), "");
}

TEST(ProcessMainDeathTest, LibrariesMayTakeLocksInAnyOrder) {
  EXPECT_EXIT(
      {
        InitProcess("test");
        absl::Mutex first;
        absl::Mutex second;
        const auto lock = [](absl::Mutex& outer, absl::Mutex& inner) {
          outer.Lock();
          inner.Lock();
          inner.Unlock();
          outer.Unlock();
        };
        lock(first, second);
        lock(second, first);
        std::exit(0);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace covey

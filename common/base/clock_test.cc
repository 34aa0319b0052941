// SPDX-License-Identifier: Apache-2.0
#include "common/base/clock.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

namespace covey {
namespace {

constexpr int kSuspendedSeconds = 600;

// Whether children of this process find that the machine was suspended for that time.
bool PretendToHaveBeenSuspended() {
  if (unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) return false;
  std::ofstream offsets("/proc/self/timens_offsets");
  offsets << "boottime " << kSuspendedSeconds << " 0" << std::endl;
  return offsets.good();
}

// In a process of its own, which has other name spaces afterwards. 0 = as expected, 1 = not, 2 =
// this system does not let it try.
int TrySuspension() {
  const absl::Time before = MonotonicNow();
  if (!PretendToHaveBeenSuspended()) return 2;
  const pid_t child = fork();
  if (child == 0) _exit(MonotonicNow() - before >= absl::Seconds(kSuspendedSeconds) ? 0 : 1);
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

TEST(ClockTest, GoesOnWhileTheMachineIsSuspended) {
  const pid_t child = fork();
  if (child == 0) _exit(TrySuspension());
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "no time name spaces here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ClockTest, NeverGoesBack) {
  absl::Time last = MonotonicNow();
  for (int i = 0; i < 1000; ++i) {
    const absl::Time now = MonotonicNow();
    EXPECT_LE(last, now);
    last = now;
  }
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "client/cli/run/restarts.h"

#include <gtest/gtest.h>

namespace covey::cli {
namespace {

using OnFailure = RunOptions::OnFailure;
using Role = Restarts::Role;
using Verdict = Restarts::Verdict;

constexpr absl::Time kNow = absl::UnixEpoch();
constexpr Restarts::Situation kTraining = {.all_started = true, .scheduler_answered = true};

Restarts::Ended Killed(Role role, absl::string_view name) {
  return {.name = name, .role = role, .rank = 1, .lived = absl::Minutes(1), .is_ok = false};
}

bool NeverRuns(const Restarts::Restart&) { return false; }

TEST(RestartsTest, FollowsWhatTheUserAskedFor) {
  struct Case {
    OnFailure on_failure;
    Role role;
    Verdict verdict;
  };
  const Case cases[] = {
      {OnFailure::kStop, Role::kScheduler, Verdict::kStaysAway},
      {OnFailure::kStop, Role::kServer, Verdict::kStaysAway},
      {OnFailure::kContinue, Role::kScheduler, Verdict::kComesBack},
      {OnFailure::kContinue, Role::kServer, Verdict::kStaysAway},
      {OnFailure::kContinue, Role::kWorker, Verdict::kStaysAway},
      {OnFailure::kRestart, Role::kScheduler, Verdict::kComesBack},
      {OnFailure::kRestart, Role::kServer, Verdict::kComesBack},
      {OnFailure::kRestart, Role::kWorker, Verdict::kComesBack},
  };
  for (const Case& c : cases) {
    Restarts restarts(c.on_failure);
    EXPECT_EQ(restarts.OnEnd(Killed(c.role, "a"), kTraining, kNow), c.verdict)
        << static_cast<int>(c.on_failure) << " " << static_cast<int>(c.role);
    EXPECT_EQ(restarts.pending().empty(), c.verdict == Verdict::kStaysAway);
  }
}

TEST(RestartsTest, NothingComesBackWhenItWouldHaveNothingToDo) {
  const Restarts::Ended worker = Killed(Role::kWorker, "worker-1");
  const Restarts::Situation situations[] = {
      {.is_stopping = true, .all_started = true, .scheduler_answered = true},
      {.training_ends = true, .all_started = true, .scheduler_answered = true},
      {.all_started = false, .scheduler_answered = true},
  };
  for (const Restarts::Situation& situation : situations) {
    EXPECT_EQ(Restarts(OnFailure::kRestart).OnEnd(worker, situation, kNow), Verdict::kStaysAway);
  }
  Restarts restarts(OnFailure::kRestart);
  Restarts::Situation silent = kTraining;
  silent.scheduler_answered = false;
  EXPECT_EQ(restarts.OnEnd(Killed(Role::kScheduler, "scheduler"), silent, kNow),
            Verdict::kStaysAway);
  Restarts::Ended well = worker;
  well.is_ok = true;
  EXPECT_EQ(restarts.OnEnd(well, kTraining, kNow), Verdict::kStaysAway);
}

TEST(RestartsTest, APlannedFaultBringsItsProcessBackOnce) {
  Restarts restarts(OnFailure::kStop);
  const Restarts::Ended server = Killed(Role::kServer, "server-1");
  restarts.Plan("server-1", Restarts::Planned::kLater);
  EXPECT_EQ(restarts.OnEnd(server, kTraining, kNow), Verdict::kComesBack);
  EXPECT_TRUE(restarts.pending().empty());
  restarts.Plan("server-1", Restarts::Planned::kAtOnce);
  EXPECT_EQ(restarts.OnEnd(server, kTraining, kNow), Verdict::kComesBack);
  EXPECT_EQ(restarts.pending().size(), 1u);
  EXPECT_EQ(restarts.OnEnd(server, kTraining, kNow), Verdict::kStaysAway);
}

TEST(RestartsTest, AreDueAfterTheDelayUnlessTheProcessRuns) {
  Restarts restarts(OnFailure::kRestart);
  EXPECT_EQ(restarts.next(), absl::InfiniteFuture());
  restarts.OnEnd(Killed(Role::kServer, "server-1"), kTraining, kNow);
  EXPECT_EQ(restarts.next(), kNow + Restarts::kDelay);
  EXPECT_TRUE(restarts.TakeDue(kNow, NeverRuns).empty());
  const auto due = restarts.TakeDue(kNow + Restarts::kDelay, NeverRuns);
  ASSERT_EQ(due.size(), 1u);
  EXPECT_EQ(due[0].rank, 1u);
  EXPECT_TRUE(restarts.pending().empty());

  restarts.Add({.at = kNow + absl::Hours(1), .role = Role::kServer, .rank = 2});
  EXPECT_TRUE(restarts.TakeDue(kNow, [](const Restarts::Restart&) { return true; }).empty());
  EXPECT_TRUE(restarts.pending().empty());
}

TEST(RestartsTest, EndWithAProcessThatEndsSoonAfterEachStart) {
  Restarts restarts(OnFailure::kRestart);
  Restarts::Ended server = Killed(Role::kServer, "server-1");
  server.lived = absl::Milliseconds(1);
  for (int i = 1; i < RestartLimit::kQuickEndsMax; ++i) {
    EXPECT_EQ(restarts.OnEnd(server, kTraining, kNow), Verdict::kComesBack);
  }
  EXPECT_EQ(restarts.OnEnd(server, kTraining, kNow), Verdict::kEndsTooOften);
}

}  // namespace
}  // namespace covey::cli

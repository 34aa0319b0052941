// SPDX-License-Identifier: Apache-2.0
#include "client/cli/process/child_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace covey::cli {
namespace {

using ::testing::HasSubstr;

Program Shell(const std::string& script) {
  return {.name = "worker-0", .arguments = {"/bin/sh", "-c", script}};
}

// Returns everything that `child` writes to `stream`, until it ends.
std::string ReadAll(ChildProcess& child, ChildProcess::Stream stream) {
  std::string all;
  while (child.descriptor(stream) >= 0) {
    pollfd waited = {.fd = child.descriptor(stream), .events = POLLIN};
    poll(&waited, 1, /*timeout=*/-1);
    all += child.Read(stream);
  }
  return all;
}

ChildExit Await(ChildProcess& child) {
  siginfo_t info;
  waitid(P_PID, child.pid(), &info, WEXITED | WNOWAIT);
  return *child.Reap();
}

TEST(ChildProcessTest, GivesItsOutputAndHowItEnded) {
  auto child = ChildProcess::Start(Shell("echo out; echo err >&2; exit 3"));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(ReadAll(**child, ChildProcess::Stream::kOutput), "out\n");
  EXPECT_EQ(ReadAll(**child, ChildProcess::Stream::kError), "err\n");
  EXPECT_EQ(Describe(Await(**child)), "exited with code 3");
  EXPECT_FALSE((*child)->running());
}

TEST(ChildProcessTest, ChangesTheEnvironment) {
  Program program = Shell("echo $COVEY_RANK $PATH ${TEST_TMPDIR-none}");
  program.environment = {{"COVEY_RANK", "7"}, {"PATH", "elsewhere"}, {"TEST_TMPDIR", ""}};
  auto child = ChildProcess::Start(program);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_EQ(ReadAll(**child, ChildProcess::Stream::kOutput), "7 elsewhere none\n");
}

TEST(ChildProcessTest, SignalsReachTheChildEvenWhenTheyAreBlockedHere) {
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGTERM);
  sigprocmask(SIG_BLOCK, &blocked, nullptr);
  auto child = ChildProcess::Start(Shell("while :; do read line < /dev/zero; done"));
  sigprocmask(SIG_UNBLOCK, &blocked, nullptr);
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_FALSE((*child)->Reap().has_value());
  (*child)->Signal(SIGTERM);
  EXPECT_EQ(Describe(Await(**child)), "killed by signal 15 (Terminated)");
}

TEST(ChildProcessTest, WhatTheChildLeavesBehindIsKilled) {
  auto child = ChildProcess::Start(Shell("cat /dev/zero > /dev/null & echo $!"));
  ASSERT_TRUE(child.ok()) << child.status();
  EXPECT_TRUE(Await(**child).ok());
  // The pipe ends only when the last process that inherited it has gone.
  EXPECT_THAT(ReadAll(**child, ChildProcess::Stream::kOutput), HasSubstr("\n"));
}

TEST(ChildProcessTest, DestructionKills) {
  pid_t pid;
  {
    auto child = ChildProcess::Start(Shell("trap '' TERM; cat /dev/zero > /dev/null"));
    ASSERT_TRUE(child.ok()) << child.status();
    pid = (*child)->pid();
  }
  EXPECT_EQ(kill(pid, 0), -1);
}

TEST(ChildProcessTest, SaysWhyItCannotStart) {
  const std::string folder = ::testing::TempDir();
  const std::string plain = absl::StrCat(folder, "/plain");
  std::ofstream(plain) << "text";

  EXPECT_THAT(FindProgram("/no/such/program").status().message(),
              HasSubstr("/no/such/program: No such file"));
  EXPECT_THAT(FindProgram("no-such-program").status().message(), HasSubstr("in PATH"));
  EXPECT_THAT(FindProgram(folder + "/.").status().message(), HasSubstr("not a file"));
  EXPECT_THAT(FindProgram(plain).status().message(), HasSubstr("not executable"));
  EXPECT_EQ(FindProgram("sh").status(), absl::OkStatus());

  chmod(plain.c_str(), 0755);  // Executable, but in no format that the system knows.
  EXPECT_THAT(ChildProcess::Start({.name = "x", .arguments = {plain}}).status().message(),
              HasSubstr(plain));
}

}  // namespace
}  // namespace covey::cli

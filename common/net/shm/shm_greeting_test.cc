// SPDX-License-Identifier: Apache-2.0
#include "common/net/shm/shm_greeting.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/net/shm/shm_region.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

std::string Endpoint(absl::string_view test) {
  return absl::StrCat("tcp://test-", test, ":", getpid());
}

struct Sockets {
  Descriptor listener;
  Descriptor connector;
  Descriptor acceptor;
};

Sockets Connected(const std::string& endpoint) {
  Sockets sockets;
  auto listener = ListenForShm(endpoint);
  EXPECT_TRUE(listener.ok()) << listener.status();
  sockets.listener = *std::move(listener);
  auto connector = ConnectShm(endpoint);
  EXPECT_TRUE(connector.ok()) << connector.status();
  sockets.connector = *std::move(connector);
  auto acceptor = AcceptShm(sockets.listener);
  EXPECT_TRUE(acceptor.ok() && *acceptor);
  sockets.acceptor = **std::move(acceptor);
  return sockets;
}

TEST(ShmGreetingTest, BothSidesHandOverTheirMemory) {
  const Sockets sockets = Connected(Endpoint("both"));
  const auto region = ShmRegion::Create();
  const Descriptor wake_up(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  for (const auto& [from, to] : {std::pair(&sockets.connector, &sockets.acceptor),
                                 std::pair(&sockets.acceptor, &sockets.connector)}) {
    auto nothing = ReadShmGreeting(*to);
    ASSERT_TRUE(nothing.ok());
    EXPECT_FALSE(*nothing);
    ASSERT_TRUE(SendShmGreeting(*from, region->descriptor(), wake_up.number()).ok());
    auto greeting = ReadShmGreeting(*to);
    ASSERT_TRUE(greeting.ok()) << greeting.status();
    ASSERT_TRUE(*greeting);
    EXPECT_TRUE(PeerShmRegion::Map(std::move((*greeting)->region)).ok());
    EXPECT_EQ(eventfd_write((*greeting)->wake_up.number(), 1), 0);
    eventfd_t woken = 0;
    EXPECT_EQ(eventfd_read(wake_up.number(), &woken), 0);
  }
}

TEST(ShmGreetingTest, OnlyAListenerIsFound) {
  const std::string endpoint = Endpoint("found");
  EXPECT_EQ(ConnectShm(endpoint).status().code(), absl::StatusCode::kNotFound);
  auto listener = ListenForShm(endpoint);
  ASSERT_TRUE(listener.ok());
  EXPECT_TRUE(ConnectShm(endpoint).ok());
  EXPECT_EQ(ListenForShm(endpoint).status().code(), absl::StatusCode::kUnavailable);
  listener->Close();
  EXPECT_EQ(ConnectShm(endpoint).status().code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(ListenForShm(std::string(200, 'x')).status().code(),
            absl::StatusCode::kInvalidArgument);
}

// The exit code of `work` in a child process.
template <typename Work>
int InChild(Work work) {
  const pid_t child = fork();
  if (child == 0) _exit(work());
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return WEXITSTATUS(status);
}

constexpr int kCannotTry = 77;

TEST(ShmGreetingTest, OtherUsersAreKeptOut) {
  const std::string endpoint = Endpoint("users");
  auto listener = ListenForShm(endpoint);
  ASSERT_TRUE(listener.ok());
  const int code = InChild([&endpoint] {
    if (setresuid(12345, 12345, 12345) != 0) return kCannotTry;
    return absl::IsPermissionDenied(ConnectShm(endpoint).status()) ? 0 : 1;
  });
  if (code == kCannotTry) GTEST_SKIP() << "only root can become another user";
  EXPECT_EQ(code, 0);
  const auto accepted = AcceptShm(*listener);
  ASSERT_TRUE(accepted.ok());
  EXPECT_FALSE(*accepted) << "the other user has connected";
}

TEST(ShmGreetingTest, OtherNetworkNamespacesAreKeptOut) {
  const std::string endpoint = Endpoint("namespaces");
  auto listener = ListenForShm(endpoint);
  ASSERT_TRUE(listener.ok());
  const int code = InChild([&endpoint] {
    if (unshare(CLONE_NEWNET) != 0) return kCannotTry;
    return absl::IsNotFound(ConnectShm(endpoint).status()) ? 0 : 1;
  });
  if (code == kCannotTry) GTEST_SKIP() << "no new network namespace without privileges";
  EXPECT_EQ(code, 0);
}

TEST(ShmGreetingTest, ALackOfDescriptorsIsNoticed) {
  const std::string endpoint = Endpoint("descriptors");
  const auto listener = ListenForShm(endpoint);
  ASSERT_TRUE(listener.ok());
  EXPECT_FALSE(*AcceptShm(*listener)) << "nobody has come";
  const auto connector = ConnectShm(endpoint);
  ASSERT_TRUE(connector.ok());
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::StatusCode code = AcceptShm(*listener).status().code();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(code, absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(*AcceptShm(*listener));
}

TEST(ShmGreetingTest, WhatIsNoGreetingIsRefused) {
  for (const size_t bytes : {1u, 8u, 24u, 1000u}) {
    const Sockets sockets = Connected(Endpoint("garbage"));
    const std::string garbage(bytes, 'C');
    ASSERT_EQ(send(sockets.connector.number(), garbage.data(), bytes, 0),
              static_cast<ssize_t>(bytes));
    EXPECT_EQ(ReadShmGreeting(sockets.acceptor).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  const Sockets sockets = Connected(Endpoint("blocks"));
  const auto region = ShmRegion::Create();
  const Descriptor blocks(eventfd(0, EFD_CLOEXEC));
  for (const int no_wake_up : {blocks.number(), sockets.connector.number()}) {
    ASSERT_TRUE(SendShmGreeting(sockets.connector, region->descriptor(), no_wake_up).ok());
    EXPECT_EQ(ReadShmGreeting(sockets.acceptor).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
}

TEST(ShmGreetingTest, APeerThatIsGoneIsNoticed) {
  Sockets sockets = Connected(Endpoint("gone"));
  sockets.connector.Close();
  EXPECT_EQ(ReadShmGreeting(sockets.acceptor).status().code(), absl::StatusCode::kUnavailable);
  const auto region = ShmRegion::Create();
  EXPECT_EQ(SendShmGreeting(sockets.acceptor, region->descriptor(), 0).code(),
            absl::StatusCode::kUnavailable);
}

}  // namespace
}  // namespace covey

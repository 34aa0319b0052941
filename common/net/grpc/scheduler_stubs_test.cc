// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/scheduler_stubs.h"

#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

namespace covey {
namespace {

TEST(SchedulerStubsTest, MovesOnFromTheCurrentSchedulerOnly) {
  int moves = 0;
  SchedulerStubs stubs("127.0.0.1:1, 127.0.0.1:2", grpc::InsecureChannelCredentials(),
                       [&] { ++moves; });
  ASSERT_EQ(stubs.size(), 2u);
  EXPECT_EQ(stubs.addresses(), "127.0.0.1:1, 127.0.0.1:2");
  EXPECT_EQ(stubs.address(1), "127.0.0.1:2");
  EXPECT_EQ(stubs.current(), 0u);
  stubs.MoveOn(1);
  EXPECT_EQ(stubs.current(), 0u);
  EXPECT_EQ(moves, 0);
  stubs.MoveOn(0);
  EXPECT_EQ(stubs.current(), 1u);
  EXPECT_EQ(moves, 1);
  // Two calls have failed at the same scheduler.
  stubs.MoveOn(0);
  EXPECT_EQ(stubs.current(), 1u);
  EXPECT_EQ(moves, 1);
  stubs.MoveOn(1);
  EXPECT_EQ(stubs.current(), 0u);
  EXPECT_EQ(moves, 2);
}

TEST(SchedulerStubsTest, StaysWithTheOnlyScheduler) {
  int moves = 0;
  SchedulerStubs stubs("127.0.0.1:1", grpc::InsecureChannelCredentials(), [&] { ++moves; });
  stubs.MoveOn(0);
  EXPECT_EQ(stubs.current(), 0u);
  EXPECT_EQ(moves, 0);
}

TEST(SchedulerStubsTest, TheCallbackMayAskForTheCurrentScheduler) {
  SchedulerStubs* seen = nullptr;
  size_t current = 0;
  SchedulerStubs stubs("127.0.0.1:1,127.0.0.1:2", grpc::InsecureChannelCredentials(),
                       [&] { current = seen->current(); });
  seen = &stubs;
  stubs.MoveOn(0);
  EXPECT_EQ(current, 1u);
}

}  // namespace
}  // namespace covey

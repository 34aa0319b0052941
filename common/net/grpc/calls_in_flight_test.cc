// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/calls_in_flight.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

namespace covey {
namespace {

TEST(CallsInFlightTest, NoCallBeginsAfterClose) {
  CallsInFlight calls;
  grpc::ClientContext context;
  EXPECT_TRUE(calls.Begin(&context));
  calls.Release(&context);
  calls.End();
  EXPECT_FALSE(calls.closed());
  calls.Close();
  EXPECT_TRUE(calls.closed());
  EXPECT_FALSE(calls.Begin(&context));
}

TEST(CallsInFlightTest, CloseWaitsUntilEveryCallHasEnded) {
  CallsInFlight calls;
  grpc::ClientContext contexts[2];
  for (grpc::ClientContext& context : contexts) ASSERT_TRUE(calls.Begin(&context));
  std::future<void> closing = std::async(std::launch::async, [&] { calls.Close(); });
  for (grpc::ClientContext& context : contexts) {
    EXPECT_EQ(closing.wait_for(std::chrono::milliseconds(50)), std::future_status::timeout);
    calls.Release(&context);
    calls.End();
  }
  closing.get();
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/net/grpc/unary_calls.h"

#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "common/net/testing/control_requests.h"
#include "common/net/testing/fake_scheduler.h"
#include "common/net/testing/reply_inbox.h"

namespace covey {
namespace {

TEST(UnaryCallsTest, ABarrierHasTheDeadlineThatItCarries) {
  FakeScheduler scheduler;
  ReplyInbox inbox;
  SchedulerStubs stubs(scheduler.address(), grpc::InsecureChannelCredentials(), [] {});
  CallsInFlight in_flight;
  UnaryCalls calls(stubs, in_flight, absl::Milliseconds(20),
                   [&](Message reply) { inbox.Put(std::move(reply)); });
  Message request = Request(1);
  request.envelope.mutable_barrier_request()->set_deadline_ms(100);
  calls.Send(std::move(request));
  const std::optional<Message> reply = inbox.Take();
  in_flight.Close();
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->envelope.has_barrier_reply());
  EXPECT_TRUE(StatusOf(*reply).ok()) << StatusOf(*reply);
}

}  // namespace
}  // namespace covey

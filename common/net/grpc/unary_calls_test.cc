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

class UnaryCallsTest : public testing::Test {
 protected:
  ~UnaryCallsTest() override { in_flight_.Close(); }

  static Message BarrierRequest() {
    Message request = Request(1);
    request.envelope.mutable_barrier_request()->set_deadline_ms(100);
    return request;
  }

  FakeScheduler scheduler_;
  ReplyInbox inbox_;
  SchedulerStubs stubs_{scheduler_.address(), grpc::InsecureChannelCredentials(), [] {}};
  CallsInFlight in_flight_;
  UnaryCalls calls_{stubs_, in_flight_, absl::Milliseconds(20),
                    [this](Message reply) { inbox_.Put(std::move(reply)); }};
};

TEST_F(UnaryCallsTest, ABarrierHasTheDeadlineThatItCarries) {
  calls_.Send(BarrierRequest());
  const std::optional<Message> reply = inbox_.Take();
  ASSERT_TRUE(reply.has_value());
  EXPECT_TRUE(reply->envelope.has_barrier_reply());
  EXPECT_TRUE(StatusOf(*reply).ok()) << StatusOf(*reply);
}

TEST_F(UnaryCallsTest, ARepeatedRequestHasOneReplyWithTheFirst) {
  calls_.Send(BarrierRequest());
  calls_.Send(BarrierRequest());
  // A heartbeat with the id of the barrier is another request, so it is sent.
  calls_.Send(HeartbeatRequest(1));
  EXPECT_TRUE(inbox_.Take()->envelope.has_heartbeat_reply());
  EXPECT_TRUE(inbox_.Take()->envelope.has_barrier_reply());
  // After the reply, a request with the same id is sent again.
  calls_.Send(BarrierRequest());
  EXPECT_TRUE(inbox_.Take()->envelope.has_barrier_reply());
  in_flight_.Close();
  EXPECT_TRUE(inbox_.empty());
}

}  // namespace
}  // namespace covey

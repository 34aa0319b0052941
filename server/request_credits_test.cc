// SPDX-License-Identifier: Apache-2.0
#include "server/request_credits.h"

#include "gtest/gtest.h"

namespace covey::server {
namespace {

constexpr size_t kBudget = 64 << 20;
constexpr Address kStranger{NodeId(99), 0};

class RequestCreditsTest : public ::testing::Test {
 protected:
  static Message PullFrom(uint64_t node) {
    Message request;
    request.envelope.mutable_header()->set_node(node);
    request.envelope.mutable_pull_request();
    return request;
  }
  // The credit in the reply to a request that has just arrived.
  uint64_t CreditFor(const Message& request) {
    credits_.Received(absl::UnixEpoch(), request);
    Message reply = MakeReply(request);
    reply.envelope.mutable_pull_reply();
    credits_.Sending(reply);
    return reply.envelope.credit_bytes();
  }

  RequestCredits credits_{kBudget,
                          [](const Message& message) { return message.from() != kStranger; }};
};

TEST_F(RequestCreditsTest, TellsEachPeerItsShareOfTheBudget) {
  EXPECT_EQ(CreditFor(PullFrom(6)), kBudget);
  EXPECT_EQ(CreditFor(PullFrom(7)), kBudget / 2);
  EXPECT_EQ(CreditFor(PullFrom(6)), kBudget / 2);
  Message push;
  push.envelope.mutable_header()->set_node(8);
  push.envelope.mutable_push_request();
  credits_.Received(absl::UnixEpoch(), push);
  EXPECT_EQ(CreditFor(PullFrom(6)), kBudget / 3);
}

TEST_F(RequestCreditsTest, CountsAndTellsNobodyElse) {
  Message beat;
  beat.envelope.mutable_header()->set_node(9);
  beat.envelope.mutable_heartbeat_request();
  credits_.Received(absl::UnixEpoch(), beat);
  EXPECT_EQ(CreditFor(PullFrom(6)), kBudget);
  credits_.Sending(beat);
  EXPECT_EQ(beat.envelope.credit_bytes(), 0u);
}

TEST_F(RequestCreditsTest, StrangersTakeNoShare) {
  EXPECT_EQ(CreditFor(PullFrom(6)), kBudget);
  EXPECT_EQ(CreditFor(PullFrom(kStranger.node.value())), kBudget);
  EXPECT_EQ(CreditFor(PullFrom(6)), kBudget);
}

TEST_F(RequestCreditsTest, KeepsWhatTheActorHasSaid) {
  Message reply;
  reply.envelope.mutable_push_reply();
  reply.envelope.set_credit_bytes(5);
  credits_.Sending(reply);
  EXPECT_EQ(reply.envelope.credit_bytes(), 5u);
}

}  // namespace
}  // namespace covey::server

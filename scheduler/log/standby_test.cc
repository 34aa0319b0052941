// SPDX-License-Identifier: Apache-2.0
#include "scheduler/log/standby.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

class Leader : public Actor {
 public:
  void Receive(absl::Time, const Message&, Outbox&) override { ++received; }
  void Wake(absl::Time, Outbox&) override { ++woken; }
  absl::Time NextWake() const override { return absl::UnixEpoch() + absl::Seconds(3); }

  int received = 0;
  int woken = 0;
};

Message Heartbeat() {
  Message request;
  request.set_to({kSchedulerNode, 0});
  request.connection = 5;
  request.envelope.mutable_header()->set_node(7);
  request.envelope.mutable_header()->set_request_id(9);
  request.envelope.mutable_heartbeat_request();
  return request;
}

TEST(StandbyTest, RefusesAndSaysWhoLeads) {
  Standby standby;
  standby.Explain("the leader is at 10.0.0.7:7000");
  Outbox outbox;
  standby.Receive(absl::UnixEpoch(), Heartbeat(), outbox);
  const std::vector<Message> sent = outbox.TakeMessages();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].connection, 5u);
  EXPECT_EQ(sent[0].envelope.header().request_id(), 9u);
  EXPECT_EQ(StatusOf(sent[0]).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(StatusOf(sent[0]).message()), HasSubstr("10.0.0.7:7000"));
  EXPECT_EQ(standby.NextWake(), absl::InfiniteFuture());
}

TEST(StandbyTest, WhatTheProcessTellsItselfIsNotAnswered) {
  Standby standby;
  Outbox outbox;
  Message lost;
  lost.envelope.mutable_connection_lost();
  standby.Receive(absl::UnixEpoch(), lost, outbox);
  EXPECT_TRUE(outbox.TakeMessages().empty());
}

TEST(StandbyTest, PassesOnToTheLeader) {
  Standby standby;
  Leader leader;
  standby.Lead(leader);
  Outbox outbox;
  standby.Receive(absl::UnixEpoch(), Heartbeat(), outbox);
  standby.Wake(absl::UnixEpoch(), outbox);
  EXPECT_TRUE(outbox.TakeMessages().empty());
  EXPECT_EQ(leader.received, 1);
  EXPECT_EQ(leader.woken, 1);
  EXPECT_EQ(standby.NextWake(), leader.NextWake());
}

}  // namespace
}  // namespace covey::scheduler

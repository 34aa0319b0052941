#include "server/server_actor.h"

#include <vector>

#include "gtest/gtest.h"

namespace covey::server {
namespace {

// A scheduler, played by hand.
class ServerActorTest : public ::testing::Test {
 protected:
  ServerActorTest()
      : actor_({.member = {.job_name = "test", .endpoints = {"", "tcp://a:1", "tcp://a:2"}}}) {
    actor_.Wake(now_, outbox_);
  }

  std::vector<Message> Sent() { return outbox_.TakeMessages(); }
  void Register() {
    const std::vector<Message> sent = Sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].envelope.register_request().role(), proto::SERVER);
    EXPECT_EQ(sent[0].envelope.register_request().endpoints_size(), 3);
    Message reply = MakeReply(sent[0]);
    proto::RegisterReply& body = *reply.envelope.mutable_register_reply();
    body.set_node(2);
    body.set_heartbeat_ms(500);
    body.mutable_view()->set_epoch(4);
    actor_.Receive(now_, reply, outbox_);
  }
  Message Load(uint32_t loop, uint64_t pushes) {
    Message message;
    message.envelope.set_from_loop(loop);
    message.envelope.mutable_heartbeat_request()->mutable_load()->set_pushes(pushes);
    return message;
  }

  ServerActor actor_;
  Outbox outbox_;
  absl::Time now_ = absl::UnixEpoch();
};

TEST_F(ServerActorTest, HandsEachNewViewToTheDataLoopsOnce) {
  std::vector<uint64_t> told;
  actor_.OnChange(
      [&](absl::Time, Outbox&) { told.push_back(actor_.member().view()->epoch().value()); });
  Register();
  std::vector<uint32_t> loops;
  for (const Message& message : Sent()) {
    if (!message.envelope.has_watch_view_reply()) continue;
    EXPECT_EQ(message.to().node, NodeId(2));
    EXPECT_EQ(message.connection, 0u);
    EXPECT_EQ(message.envelope.watch_view_reply().view().epoch(), 4u);
    loops.push_back(message.to().loop);
  }
  EXPECT_EQ(loops, (std::vector<uint32_t>{1, 2}));
  EXPECT_EQ(told, (std::vector<uint64_t>{4}));
}

TEST_F(ServerActorTest, ReportsTheSumOfItsLoops) {
  Register();
  Sent();
  actor_.Receive(now_, Load(1, 10), outbox_);
  actor_.Receive(now_, Load(2, 5), outbox_);
  actor_.Receive(now_, Load(1, 11), outbox_);
  actor_.Receive(now_, Load(3, 100), outbox_);  // no such loop
  Message stranger = Load(2, 1000);
  stranger.connection = 9;
  actor_.Receive(now_, stranger, outbox_);
  now_ += absl::Milliseconds(500);
  actor_.Wake(now_, outbox_);
  const std::vector<Message> sent = Sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].to(), (Address{kSchedulerNode, 0}));
  EXPECT_EQ(sent[0].envelope.heartbeat_request().load().pushes(), 16u);
}

TEST_F(ServerActorTest, ReportsEachTableOnceOverItsLoops) {
  Register();
  Sent();
  const auto add = [](Message& load, uint32_t table, uint64_t updates, double staleness) {
    proto::TableAsynchrony& report =
        *load.envelope.mutable_heartbeat_request()->mutable_load()->add_tables();
    report.set_table(table);
    report.set_updates(updates);
    report.set_staleness(staleness);
  };
  Message first = Load(1, 1), second = Load(2, 1);
  add(first, 7, 30, 2);
  add(second, 3, 5, 1);
  add(second, 7, 10, 6);
  actor_.Receive(now_, first, outbox_);
  actor_.Receive(now_, second, outbox_);
  now_ += absl::Milliseconds(500);
  actor_.Wake(now_, outbox_);
  const std::vector<Message> sent = Sent();
  ASSERT_EQ(sent.size(), 1u);
  const auto& tables = sent[0].envelope.heartbeat_request().load().tables();
  ASSERT_EQ(tables.size(), 2);
  EXPECT_EQ(tables[0].table(), 3u);
  EXPECT_EQ(tables[1].table(), 7u);
  EXPECT_EQ(tables[1].updates(), 40u);
  EXPECT_DOUBLE_EQ(tables[1].staleness(), 3);
}

TEST_F(ServerActorTest, LeavesInOrder) {
  Register();
  Sent();
  actor_.Leave(now_, "signal 15", outbox_);
  const std::vector<Message> sent = Sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].envelope.leave_request().reason(), "signal 15");
  Message reply = MakeReply(sent[0]);
  reply.envelope.mutable_leave_reply();
  actor_.Receive(now_, reply, outbox_);
  EXPECT_EQ(actor_.member().state(), Member::State::kLeft);
}

}  // namespace
}  // namespace covey::server

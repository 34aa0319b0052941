// SPDX-License-Identifier: Apache-2.0
#include "server/server_actor.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace covey::server {
namespace {

// A server's control loop, with a scheduler played by hand.
class ServerActorTest : public ::testing::Test {
 protected:
  ServerActorTest()
      : actor_({.member = {.job_name = "test", .endpoints = {"", "tcp://a:1", "tcp://a:2"}}}) {
    actor_.Wake(now_, outbox_);
  }

  std::vector<Message> Sent() {
    std::vector<Message> sent = outbox_.TakeMessages();
    for (const Message& message : sent) {
      if (message.envelope.has_watch_view_request()) watch_ = message;
    }
    return sent;
  }
  void Register(uint32_t heartbeat_ms = 500) {
    const std::vector<Message> sent = Sent();
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].envelope.register_request().role(), proto::SERVER);
    EXPECT_EQ(sent[0].envelope.register_request().endpoints_size(), 3);
    Message reply = MakeReply(sent[0]);
    proto::RegisterReply& body = *reply.envelope.mutable_register_reply();
    body.set_node(2);
    body.set_heartbeat_ms(heartbeat_ms);
    body.set_lease_ms(2000);
    body.mutable_view()->set_epoch(4);
    actor_.Receive(now_, reply, outbox_);
  }
  Message Load(uint32_t loop, uint64_t pushes) {
    Message message;
    message.envelope.set_from_loop(loop);
    message.envelope.mutable_heartbeat_request()->mutable_load()->set_pushes(pushes);
    return message;
  }

  std::vector<Message> OfKind(bool (proto::Envelope::*is_kind)() const) {
    std::vector<Message> sent = Sent();
    std::erase_if(sent, [&](const Message& message) { return !(message.envelope.*is_kind)(); });
    return sent;
  }
  void Answer(const Message& request, const absl::Status& status) {
    Message reply = MakeReply(request);
    reply.envelope.mutable_drain_reply();
    SetStatus(status, reply);
    actor_.Receive(now_, reply, outbox_);
  }
  // A view with this server and another one, and a table of one shard, which this server holds or
  // the other one does.
  void AdoptView(bool holds_shard, bool draining) {
    if (view_.nodes_size() == 0) {
      for (uint64_t id : {2, 3}) {
        proto::Node& node = *view_.add_nodes();
        node.set_id(id);
        node.set_name("server-" + std::to_string(id - 2));
        node.set_role(proto::SERVER);
        node.set_state(proto::Node::ALIVE);
      }
      proto::Table& table = *view_.add_tables();
      table.set_id(1);
      table.mutable_spec()->add_shape(4);
      proto::Shard& shard = *table.add_shards();
      shard.set_element_count(4);
      shard.set_generation(3);
      shard.set_chain_epoch(3);
      shard.add_chain();
      view_.set_epoch(5);
    }
    view_.set_epoch(view_.epoch() + 1);
    view_.mutable_nodes(0)->set_draining(draining);
    view_.mutable_tables(0)->mutable_shards(0)->mutable_chain(0)->set_node(holds_shard ? 2 : 3);
    Sent();
    Message reply = MakeReply(watch_);
    *reply.envelope.mutable_watch_view_reply()->mutable_view() = view_;
    actor_.Receive(now_, reply, outbox_);
    EXPECT_EQ(actor_.member().view()->epoch().value(), view_.epoch());
  }
  // The data loops confirm that the lease is over.
  void ConfirmStop() {
    const std::vector<Message> notices = OfKind(&proto::Envelope::has_lease_notice);
    EXPECT_EQ(notices.size(), 2u);
    for (const Message& notice : notices) {
      Message confirmation = MakeReply(notice);
      *confirmation.envelope.mutable_lease_notice() = notice.envelope.lease_notice();
      actor_.Receive(now_, confirmation, outbox_);
    }
  }
  // The other server has the shard, too.
  void AdoptReplicatedView() {
    AdoptView(/*holds_shard=*/true, /*draining=*/false);
    view_.mutable_tables(0)->mutable_shards(0)->add_chain()->set_node(3);
    AdoptView(/*holds_shard=*/true, /*draining=*/false);
  }
  void ExpectGoodbye(const std::string& reason) {
    const std::vector<Message> sent = OfKind(&proto::Envelope::has_leave_request);
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_EQ(sent[0].envelope.leave_request().reason(), reason);
    Message reply = MakeReply(sent[0]);
    reply.envelope.mutable_leave_reply();
    actor_.Receive(now_, reply, outbox_);
    EXPECT_EQ(actor_.member().state(), Member::State::kLeft);
  }

  // Time passes, in which these data loops report their loads.
  void Pass(absl::Duration time, const std::vector<uint32_t>& loops) {
    for (const absl::Time until = now_ + time; now_ < until;) {
      now_ += absl::Milliseconds(500);
      for (const uint32_t loop : loops) actor_.Receive(now_, Load(loop, 1), outbox_);
      actor_.Wake(now_, outbox_);
    }
  }

  ServerActor actor_;
  Outbox outbox_;
  absl::Time now_ = absl::UnixEpoch();
  Message watch_;  // the newest
  proto::ClusterView view_;
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

TEST_F(ServerActorTest, TellsTheDataLoopsOfItsLeaseBeforeTheView) {
  Register();
  std::vector<uint32_t> lease, view;
  for (const Message& message : Sent()) {
    if (message.envelope.has_watch_view_reply()) view.push_back(message.to().loop);
    if (!message.envelope.has_lease_notice()) continue;
    EXPECT_TRUE(view.empty());
    EXPECT_EQ(message.envelope.lease_notice().until_ns(),
              absl::ToUnixNanos(now_ + absl::Seconds(2)));
    lease.push_back(message.to().loop);
  }
  EXPECT_EQ(lease, (std::vector<uint32_t>{1, 2}));
  now_ += absl::Milliseconds(500);
  actor_.Wake(now_, outbox_);
  Message reply = MakeReply(OfKind(&proto::Envelope::has_heartbeat_request)[0]);
  reply.envelope.mutable_heartbeat_reply()->set_lease_ms(2000);
  actor_.Receive(now_ + absl::Milliseconds(1), reply, outbox_);
  const std::vector<Message> renewed = OfKind(&proto::Envelope::has_lease_notice);
  ASSERT_EQ(renewed.size(), 2u);
  EXPECT_EQ(renewed[0].envelope.lease_notice().until_ns(),
            absl::ToUnixNanos(now_ + absl::Seconds(2)));
}

TEST_F(ServerActorTest, ReportsTheSumOfItsLoops) {
  Register();
  Sent();
  actor_.Receive(now_, Load(1, 10), outbox_);
  actor_.Receive(now_, Load(2, 5), outbox_);
  actor_.Receive(now_, Load(1, 11), outbox_);
  actor_.Receive(now_, Load(3, 100), outbox_);  // there is no such loop
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

TEST_F(ServerActorTest, SaysWhatItsTablesMayTakeFromItsRegistrationOn) {
  Sent();
  ServerActor actor({.member = {.job_name = "test", .endpoints = {"", "tcp://a:1"}}});
  actor.SetTableBytesMax(1000);
  actor.Wake(now_, outbox_);
  const std::vector<Message> registrations = OfKind(&proto::Envelope::has_register_request);
  ASSERT_EQ(registrations.size(), 1u);
  EXPECT_EQ(registrations[0].envelope.register_request().load().table_bytes_max(), 1000u);
  Message reply = MakeReply(registrations[0]);
  reply.envelope.mutable_register_reply()->set_node(2);
  reply.envelope.mutable_register_reply()->set_heartbeat_ms(500);
  actor.Receive(now_, reply, outbox_);
  actor.SetTableBytesMax(2000);
  actor.Receive(now_, Load(1, 10), outbox_);
  Sent();
  now_ += absl::Milliseconds(500);
  actor.Wake(now_, outbox_);
  const std::vector<Message> beats = OfKind(&proto::Envelope::has_heartbeat_request);
  ASSERT_EQ(beats.size(), 1u);
  EXPECT_EQ(beats[0].envelope.heartbeat_request().load().table_bytes_max(), 2000u);
  EXPECT_EQ(beats[0].envelope.heartbeat_request().load().pushes(), 10u);
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

TEST_F(ServerActorTest, AsksToBeDrainedAndLeavesOnceItHoldsNothing) {
  Register();
  Sent();
  AdoptView(true, false);
  Sent();
  actor_.Leave(now_, "signal 15", now_ + absl::Seconds(30), outbox_);
  std::vector<Message> sent = Sent();
  ASSERT_EQ(sent.size(), 1u);
  EXPECT_EQ(sent[0].envelope.drain_request().node(), "server-0");
  Answer(sent[0], absl::OkStatus());
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  AdoptView(true, true);
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty()) << "a shard is still here";
  AdoptView(false, true);
  ExpectGoodbye("signal 15, drained");
}

TEST_F(ServerActorTest, LeavesWhenSomebodyElseHasDrainedIt) {
  Register();
  AdoptView(true, true);
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  AdoptView(false, true);
  ExpectGoodbye("drained");
}

// The request to leave is in flight when the scheduler withdraws the drain.
TEST_F(ServerActorTest, StaysWhenItIsWantedAgain) {
  Register();
  for (const bool draining : {false, true}) {
    AdoptView(/*holds_shard=*/false, /*draining=*/true);
    EXPECT_EQ(OfKind(&proto::Envelope::has_leave_request).size(), 1u);
    AdoptView(/*holds_shard=*/draining, draining);
    now_ += absl::Seconds(30);
    actor_.Wake(now_, outbox_);
    EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
    EXPECT_EQ(actor_.member().state(), Member::State::kMember);
  }
  AdoptView(/*holds_shard=*/false, /*draining=*/true);
  ExpectGoodbye("drained");
}

TEST_F(ServerActorTest, AsksAgainToBeDrainedWhenItIsWantedAgain) {
  Register();
  AdoptView(/*holds_shard=*/true, /*draining=*/false);
  actor_.Leave(now_, "signal 15", now_ + absl::Seconds(60), outbox_);
  Answer(OfKind(&proto::Envelope::has_drain_request)[0], absl::OkStatus());
  AdoptView(/*holds_shard=*/false, /*draining=*/true);
  AdoptView(/*holds_shard=*/true, /*draining=*/false);
  actor_.Wake(now_, outbox_);
  EXPECT_EQ(OfKind(&proto::Envelope::has_drain_request).size(), 1u);
  AdoptView(/*holds_shard=*/false, /*draining=*/true);
  ExpectGoodbye("signal 15, drained");
}

TEST_F(ServerActorTest, StaysWhenItIsEmptyAndNobodyDrainsIt) {
  Register();
  AdoptView(false, false);
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
}

TEST_F(ServerActorTest, LeavesAtOnceWhenDrainingIsRefused) {
  Register();
  AdoptView(true, false);
  Sent();
  actor_.Leave(now_, "signal 15", now_ + absl::Seconds(30), outbox_);
  Answer(Sent()[0], absl::UnavailableError("starting"));
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  now_ += absl::Milliseconds(500);
  actor_.Wake(now_, outbox_);
  const std::vector<Message> again = OfKind(&proto::Envelope::has_drain_request);
  ASSERT_EQ(again.size(), 1u);
  Answer(again[0], absl::FailedPreconditionError("there is no other server"));
  ConfirmStop();
  ExpectGoodbye("signal 15");
}

TEST_F(ServerActorTest, LeavesWhenDrainingTakesTooLongOrNobodyIsLeft) {
  Register();
  AdoptView(true, false);
  actor_.Leave(now_, "signal 15", now_ + absl::Seconds(30), outbox_);
  Answer(OfKind(&proto::Envelope::has_drain_request)[0], absl::OkStatus());
  AdoptView(true, true);
  now_ += absl::Milliseconds(29900);
  actor_.Wake(now_, outbox_);
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  view_.mutable_nodes(1)->set_draining(true);
  AdoptView(true, true);
  const std::vector<Message> again = OfKind(&proto::Envelope::has_drain_request);
  ASSERT_EQ(again.size(), 1u);
  Answer(again[0], absl::FailedPreconditionError("there is no other server"));
  ConfirmStop();
  ExpectGoodbye("signal 15");
}

TEST_F(ServerActorTest, LeavesAtTheDeadlineOrWhenTheSchedulerIsSilent) {
  Register();
  AdoptView(true, false);
  Sent();
  actor_.Leave(now_, "signal 15", now_ + absl::Seconds(30), outbox_);
  now_ += absl::Milliseconds(2900);
  actor_.Wake(now_, outbox_);
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  now_ += absl::Milliseconds(100);
  actor_.Wake(now_, outbox_);
  ConfirmStop();
  ExpectGoodbye("signal 15");
}

// The scheduler lets another server take over as soon as it hears the goodbye.
TEST_F(ServerActorTest, NoAnswerOfTheSchedulerRenewsALeaseThatTheServerHasEnded) {
  Register();
  AdoptView(true, false);
  Sent();
  now_ += absl::Milliseconds(500);
  actor_.Wake(now_, outbox_);
  const Message beat = OfKind(&proto::Envelope::has_heartbeat_request).at(0);
  actor_.Leave(now_, "signal 15", now_, outbox_);
  actor_.Wake(now_, outbox_);
  const std::vector<Message> notices = OfKind(&proto::Envelope::has_lease_notice);
  ASSERT_EQ(notices.size(), 2u);
  EXPECT_EQ(notices[0].envelope.lease_notice().until_ns(), absl::ToUnixNanos(now_));
  Message reply = MakeReply(beat);
  reply.envelope.mutable_heartbeat_reply()->set_lease_ms(2000);
  actor_.Receive(now_, reply, outbox_);
  EXPECT_GT(actor_.member().lease_until(), now_);
  EXPECT_TRUE(OfKind(&proto::Envelope::has_lease_notice).empty());
}

TEST_F(ServerActorTest, TellsTheSchedulerOfReplicasUntilTheChainIsAnother) {
  Register();
  AdoptView(true, false);
  Sent();
  Message report;
  report.envelope.set_from_loop(1);
  proto::ReplicaReport& body = *report.envelope.mutable_replica_report_request()->add_reports();
  body.set_table(1);
  body.set_generation(3);
  body.set_chain_epoch(3);
  body.set_node(9);
  body.set_kind(proto::ReplicaReport::READY);
  Message stranger = report;
  stranger.connection = 4;
  actor_.Receive(now_, stranger, outbox_);
  EXPECT_TRUE(Sent().empty());
  actor_.Receive(now_, report, outbox_);
  EXPECT_EQ(OfKind(&proto::Envelope::has_replica_report_request).size(), 1u);
  now_ += absl::Milliseconds(500);
  actor_.Wake(now_, outbox_);
  const std::vector<Message> again = OfKind(&proto::Envelope::has_replica_report_request);
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0].envelope.replica_report_request().reports(0).node(), 9u);
  view_.mutable_tables(0)->mutable_shards(0)->set_chain_epoch(8);
  AdoptView(true, false);
  now_ += absl::Milliseconds(500);
  actor_.Wake(now_, outbox_);
  EXPECT_TRUE(OfKind(&proto::Envelope::has_replica_report_request).empty());
}

TEST_F(ServerActorTest, LeavesWhenADataLoopHangs) {
  Register();
  AdoptReplicatedView();
  Pass(absl::Minutes(1), {1, 2});
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  Pass(absl::Seconds(2), {1});
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  EXPECT_EQ(actor_.silent_loop(now_)->loop, 2u);
  EXPECT_EQ(actor_.silent_loop(now_)->silence, absl::Seconds(2));
  Pass(absl::Milliseconds(500), {1});
  EXPECT_EQ(actor_.hang().message(), "its loop data-2 hangs: silent for 2.5 s");
  EXPECT_FALSE(actor_.is_over());
  ExpectGoodbye("its loop data-2 hangs: silent for 2.5 s");
  EXPECT_TRUE(actor_.is_over());
}

TEST_F(ServerActorTest, LeavesWhenADataLoopNeverReports) {
  Register();
  Pass(absl::Seconds(2), {2});
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  Pass(absl::Milliseconds(500), {2});
  ExpectGoodbye("its loop data-1 hangs: silent for 2.5 s");
}

// The loop may go on to serve the shard under the lease, so only a death may let others take over.
TEST_F(ServerActorTest, EndsWithoutAGoodbyeWhereItHasTheOnlyCopy) {
  int told = 0;
  actor_.OnChange([&](absl::Time, Outbox&) { told += actor_.is_over(); });
  Register();
  AdoptView(/*holds_shard=*/true, /*draining=*/false);
  Pass(absl::Seconds(3), {1});
  EXPECT_FALSE(actor_.hang().ok());
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  EXPECT_TRUE(actor_.is_over());
  EXPECT_EQ(told, 1);
}

TEST_F(ServerActorTest, TakesItsGoodbyeBackWhenItGetsTheOnlyCopy) {
  Register();
  AdoptReplicatedView();
  Pass(absl::Milliseconds(2500), {1});
  EXPECT_EQ(OfKind(&proto::Envelope::has_leave_request).size(), 1u);
  EXPECT_FALSE(actor_.is_over());
  view_.mutable_tables(0)->mutable_shards(0)->mutable_chain()->RemoveLast();
  AdoptView(/*holds_shard=*/true, /*draining=*/false);
  EXPECT_TRUE(actor_.is_over());
  Pass(absl::Seconds(5), {1});
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
}

TEST_F(ServerActorTest, NoticesAHangBetweenRareHeartbeats) {
  Register(/*heartbeat_ms=*/60000);
  const absl::Time hung = now_ + absl::Milliseconds(500);
  Pass(absl::Milliseconds(500), {1, 2});
  Pass(absl::Milliseconds(500), {1});
  EXPECT_EQ(actor_.NextWake(), hung + DataLoopWatch::kSilentMax);
}

// The whole process stood still, and the reports of its loops wait unread.
TEST_F(ServerActorTest, ItsOwnPauseIsNoSilenceOfItsLoops) {
  Register();
  AdoptReplicatedView();
  Pass(absl::Seconds(5), {1, 2});
  now_ += absl::Minutes(1);
  actor_.Wake(now_, outbox_);
  Pass(absl::Milliseconds(1500), {1});
  EXPECT_TRUE(OfKind(&proto::Envelope::has_leave_request).empty());
  Pass(absl::Seconds(1), {1});
  EXPECT_EQ(OfKind(&proto::Envelope::has_leave_request).size(), 1u);
}

}  // namespace
}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#include "worker/engine/worker_actor.h"

#include <optional>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/testing/ring_fixture.h"

namespace covey::worker {
namespace {

using ::testing::HasSubstr;

// A worker of a group of two, with the scheduler's replies given by hand.
class WorkerActorTest : public testing::Test {
 protected:
  WorkerActorTest()
      : actor_({.member = {.job_name = "j", .role = proto::WORKER}},
               {.rendezvous = RendezvousMode::kAtOnce}) {
    AwaitReady();
    actor_.Wake(now_, outbox_);
  }

  void AwaitReady() {
    actor_.WhenReady([this](const absl::Status& status) {
      EXPECT_FALSE(formed_.has_value()) << "called twice";
      formed_ = status;
    });
  }

  // The actor's newest message with this body; fails the test when there is none.
  Message Sent(proto::Envelope::BodyCase body) {
    for (Message& message : outbox_.TakeMessages()) sent_.push_back(std::move(message));
    for (size_t i = sent_.size(); i-- > 0;) {
      if (sent_[i].envelope.body_case() == body) return sent_[i];
    }
    ADD_FAILURE() << "nothing sent with body " << body;
    return Message();
  }

  void Register(const proto::ClusterView& view) {
    Message reply = MakeReply(Sent(proto::Envelope::kRegisterRequest));
    proto::RegisterReply& body = *reply.envelope.mutable_register_reply();
    body.set_node(Ring::kFirstNode);
    body.set_heartbeat_ms(500);
    *body.mutable_view() = view;
    actor_.Receive(now_, reply, outbox_);
  }

  void ShowView(const proto::ClusterView& view) {
    Message reply = MakeReply(Sent(proto::Envelope::kWatchViewRequest));
    *reply.envelope.mutable_watch_view_reply()->mutable_view() = view;
    actor_.Receive(now_, reply, outbox_);
  }

  // A group of the first `members` of three workers continues at once; the others are dead.
  static proto::ClusterView ViewAfterDeaths(uint32_t members) {
    proto::ClusterView view = Ring::ActiveView(3);
    const uint64_t deaths = 3 - members;
    view.set_epoch(1 + deaths);
    proto::Group& group = *view.mutable_groups(0);
    group.set_generation(Ring::kGeneration + deaths);
    group.set_recovery_generation(Ring::kGeneration + deaths);
    group.mutable_members()->Truncate(static_cast<int>(members));
    for (int i = static_cast<int>(members); i < 3; ++i) {
      view.mutable_nodes(i)->set_state(proto::Node::DEAD);
    }
    return view;
  }

  void StartMeeting() {
    proto::Envelope barrier;
    barrier.mutable_barrier_request()->set_name("end");
    actor_.Meet(
        now_, barrier, now_ + absl::Minutes(10),
        [this](const absl::Status& status) {
          EXPECT_FALSE(met_.has_value()) << "called twice";
          met_ = status;
        },
        outbox_);
  }

  static proto::ClusterView ViewWithoutGroups() {
    proto::ClusterView view = Ring::ActiveView(2);
    view.clear_groups();
    return view;
  }
  static proto::ClusterView NewerView() {
    proto::ClusterView view = Ring::ActiveView(2);
    view.set_epoch(2);
    return view;
  }

  absl::Time now_ = absl::UnixEpoch();
  Outbox outbox_;
  WorkerActor actor_;
  std::vector<Message> sent_;
  std::optional<absl::Status> formed_;
  std::optional<absl::Status> met_;
};

// Without keys anybody can give the number of a node, but not the number of its process.
TEST_F(WorkerActorTest, DropsWhatAnotherProcessSendsInTheNameOfANode) {
  Register(Ring::ActiveView(2));
  Message forged;
  forged.connection = 7;
  forged.envelope.mutable_header()->set_node(Ring::kFirstNode + 1);
  proto::GroupAbort& abort = *forged.envelope.mutable_group_abort();
  abort.mutable_round()->set_generation(Ring::kGeneration);
  abort.set_reason("of a stranger");
  actor_.Receive(now_, forged, outbox_);
  EXPECT_EQ(actor_.impostors(), 1u);
  EXPECT_TRUE(actor_.group().failure().ok());
  forged.envelope.mutable_header()->set_incarnation(101);
  actor_.Receive(now_, forged, outbox_);
  EXPECT_EQ(actor_.impostors(), 1u);
  EXPECT_THAT(actor_.group().failure().message(), HasSubstr("of a stranger"));
}

TEST_F(WorkerActorTest, TellsWhenTheGroupHasFormed) {
  Register(ViewWithoutGroups());
  EXPECT_FALSE(formed_.has_value());
  ShowView(NewerView());
  ASSERT_TRUE(formed_.has_value());
  EXPECT_TRUE(formed_->ok());
  EXPECT_EQ(actor_.group().size(), 2u);
}

TEST_F(WorkerActorTest, WhoAsksWhenAMemberHasDiedIsToldOnceTheOthersHaveMet) {
  Register(Ring::ActiveView(3));
  ASSERT_TRUE(formed_.has_value());
  formed_.reset();
  ShowView(ViewAfterDeaths(2));
  AwaitReady();
  EXPECT_FALSE(formed_.has_value()) << "its group has not met anew";
  ShowView(ViewAfterDeaths(1));
  ASSERT_TRUE(formed_.has_value());
  EXPECT_TRUE(formed_->ok()) << *formed_;
  EXPECT_TRUE(actor_.group().ready());
  EXPECT_EQ(actor_.group().size(), 1u);
}

TEST_F(WorkerActorTest, WhoAsksWhileTheGroupIsReadyIsToldAtOnceAndOnce) {
  Register(Ring::ActiveView(3));
  formed_.reset();
  AwaitReady();
  ASSERT_TRUE(formed_.has_value());
  EXPECT_TRUE(formed_->ok());
  ShowView(ViewAfterDeaths(1));
}

TEST_F(WorkerActorTest, WhoIsToGoBeforeItIsInAGroupIsToldSo) {
  Register(ViewWithoutGroups());
  proto::ClusterView view = ViewWithoutGroups();
  view.set_epoch(2);
  view.mutable_nodes(0)->set_draining(true);
  ShowView(view);
  ASSERT_TRUE(formed_.has_value());
  EXPECT_EQ(formed_->code(), absl::StatusCode::kCancelled);
}

TEST_F(WorkerActorTest, TellsWhenItCannotJoin) {
  Message reply = MakeReply(Sent(proto::Envelope::kRegisterRequest));
  reply.envelope.mutable_register_reply();
  SetStatus(absl::FailedPreconditionError("job is full"), reply);
  actor_.Receive(now_, reply, outbox_);
  ASSERT_TRUE(formed_.has_value());
  EXPECT_EQ(formed_->code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(WorkerActorTest, HeartbeatsCarryTheReportedStep) {
  Register(Ring::ActiveView(2));
  actor_.ReportStep(now_, {.samples = 64, .loss = 0.5});
  now_ += absl::Seconds(1);
  actor_.Wake(now_, outbox_);
  const proto::Progress progress =
      Sent(proto::Envelope::kHeartbeatRequest).envelope.heartbeat_request().progress();
  EXPECT_EQ(progress.step(), 1u);
  EXPECT_EQ(progress.group(), actor_.group().id().value());
  EXPECT_EQ(progress.group_step(), 0u) << "no hybrid step";
  EXPECT_EQ(progress.samples(), 64u);
  EXPECT_EQ(progress.loss(), 0.5);
}

TEST_F(WorkerActorTest, HeartbeatsNameTheGroupBeforeTheFirstStep) {
  proto::ClusterView view = Ring::ActiveView(2);
  view.mutable_groups(0)->set_id(7);
  Register(view);
  now_ += absl::Seconds(1);
  actor_.Wake(now_, outbox_);
  const proto::Progress progress =
      Sent(proto::Envelope::kHeartbeatRequest).envelope.heartbeat_request().progress();
  EXPECT_EQ(progress.group(), 7u);
  EXPECT_EQ(progress.group_step(), 0u);
}

TEST_F(WorkerActorTest, HeartbeatsSayWhereTheTimeOfAStepGoes) {
  Register(Ring::ActiveView(2));
  for (int i = 0; i < 2; ++i) {
    actor_.ReportStep(now_, {.samples = 64,
                             .loss = 0.5,
                             .compute = absl::Milliseconds(600),
                             .wait = absl::Milliseconds(400),
                             .input = absl::Milliseconds(50),
                             .servers = absl::Milliseconds(150)});
    now_ += absl::Seconds(1);
  }
  actor_.Wake(now_, outbox_);
  const proto::Progress progress =
      Sent(proto::Envelope::kHeartbeatRequest).envelope.heartbeat_request().progress();
  EXPECT_DOUBLE_EQ(progress.compute_seconds(), 0.6);
  EXPECT_DOUBLE_EQ(progress.input_seconds(), 0.05);
  EXPECT_DOUBLE_EQ(progress.wait_seconds(), 0.4);
  EXPECT_DOUBLE_EQ(progress.group_seconds(), 0.25);
  EXPECT_DOUBLE_EQ(progress.servers_seconds(), 0.15);
}

TEST_F(WorkerActorTest, ABarrierEndsWhenTheSchedulerAnswers) {
  Register(Ring::ActiveView(2));
  StartMeeting();
  EXPECT_FALSE(met_.has_value());
  Message reply = MakeReply(Sent(proto::Envelope::kBarrierRequest));
  reply.envelope.mutable_barrier_reply();
  actor_.Receive(now_, reply, outbox_);
  ASSERT_TRUE(met_.has_value());
  EXPECT_TRUE(met_->ok());
}

TEST_F(WorkerActorTest, ABarrierEndsWhenAWorkerIsDead) {
  Register(Ring::ActiveView(2));
  StartMeeting();
  const Message request = Sent(proto::Envelope::kBarrierRequest);
  proto::ClusterView view = NewerView();
  view.mutable_nodes(1)->set_state(proto::Node::DEAD);
  ShowView(view);
  ASSERT_TRUE(met_.has_value());
  EXPECT_EQ(met_->code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(met_->message(), HasSubstr("worker-1"));
  // The reply that arrives anyway has no effect.
  Message reply = MakeReply(request);
  reply.envelope.mutable_barrier_reply();
  actor_.Receive(now_, reply, outbox_);
}

TEST_F(WorkerActorTest, LosingMembershipFailsTheGroup) {
  Register(Ring::ActiveView(2));
  now_ += absl::Seconds(1);
  actor_.Wake(now_, outbox_);
  Message reply = MakeReply(Sent(proto::Envelope::kHeartbeatRequest));
  reply.envelope.mutable_heartbeat_reply();
  SetStatus(absl::AbortedError("declared dead"), reply);
  actor_.Receive(now_, reply, outbox_);
  EXPECT_THAT(actor_.group().failure().message(), HasSubstr("declared dead"));
}

TEST_F(WorkerActorTest, HeartbeatsSayThatTheProgramIsAway) {
  Register(Ring::ActiveView(2));
  const auto beat = [this] {
    now_ += absl::Seconds(1);
    actor_.Wake(now_, outbox_);
    return Sent(proto::Envelope::kHeartbeatRequest).envelope.heartbeat_request();
  };
  EXPECT_FALSE(beat().has_away());
  actor_.SetAway("evaluation", now_ + absl::Seconds(5));
  const proto::HeartbeatRequest away = beat();
  EXPECT_EQ(away.away().reason(), "evaluation");
  EXPECT_EQ(away.away().left_ms(), 4000u);
  actor_.SetBack(now_);
  EXPECT_FALSE(beat().has_away());
  actor_.SetAway("saving", now_ + absl::Seconds(2));
  EXPECT_TRUE(beat().has_away());
  EXPECT_FALSE(beat().has_away()) << "its time is over";
}

// The whole way of an order: it comes with a heartbeat's reply, and the report goes with the next
// heartbeats until a reply no longer asks for it.
TEST_F(WorkerActorTest, HeartbeatsReportTheLinksThatTheSchedulerAsksFor) {
  Register(ViewWithoutGroups());
  const auto beat = [this](uint64_t order) {
    now_ += absl::Seconds(1);
    actor_.Wake(now_, outbox_);
    const Message request = Sent(proto::Envelope::kHeartbeatRequest);
    Message reply = MakeReply(request);
    proto::HeartbeatReply& body = *reply.envelope.mutable_heartbeat_reply();
    if (order != 0) {
      body.mutable_probe()->set_order(order);
      body.mutable_probe()->add_peers(Ring::kFirstNode + 1);
    }
    actor_.Receive(now_, reply, outbox_);
    return request.envelope.heartbeat_request();
  };
  EXPECT_FALSE(beat(5).has_probes());
  for (int trip = 0; trip < 7; ++trip) {
    Message probe = Sent(proto::Envelope::kPeerProbe);
    ASSERT_EQ(probe.to().node, NodeId(Ring::kFirstNode + 1));
    Message reply = MakeReply(probe);
    reply.connection = 1;
    reply.envelope.mutable_header()->set_node(Ring::kFirstNode + 1);
    reply.envelope.mutable_header()->set_incarnation(101);
    *reply.envelope.mutable_peer_probe() = probe.envelope.peer_probe();
    reply.envelope.mutable_peer_probe()->set_reply(true);
    now_ += absl::Milliseconds(1);
    actor_.Receive(now_, reply, outbox_);
  }
  const proto::HeartbeatRequest told = beat(5);
  EXPECT_EQ(told.probes().order(), 5u);
  ASSERT_EQ(told.probes().links_size(), 1);
  EXPECT_EQ(told.probes().links(0).node(), Ring::kFirstNode + 1);
  EXPECT_NEAR(told.probes().links(0).round_trip_seconds(), 0.001, 1e-6);
  EXPECT_TRUE(beat(0).has_probes()) << "it may have been lost";
  EXPECT_FALSE(beat(0).has_probes());
}

TEST_F(WorkerActorTest, ProbesOfOtherWorkersAreReturnedWithoutAGroup) {
  Register(ViewWithoutGroups());
  Message probe;
  probe.connection = 1;
  probe.envelope.mutable_header()->set_node(Ring::kFirstNode + 1);
  probe.envelope.mutable_header()->set_incarnation(101);
  probe.envelope.mutable_peer_probe()->set_number(3);
  actor_.Receive(now_, probe, outbox_);
  EXPECT_TRUE(Sent(proto::Envelope::kPeerProbe).envelope.peer_probe().reply());
  const uint64_t before = actor_.impostors();
  probe.envelope.mutable_header()->set_incarnation(102);
  actor_.Receive(now_, probe, outbox_);
  EXPECT_EQ(actor_.impostors(), before + 1);
}

TEST_F(WorkerActorTest, RepliesToHeartbeatsStretchTheDeadlinesOfItsGroup) {
  Register(Ring::ActiveView(2));
  const auto hear = [this](std::vector<uint64_t> away) {
    now_ += absl::Seconds(1);
    actor_.Wake(now_, outbox_);
    Message reply = MakeReply(Sent(proto::Envelope::kHeartbeatRequest));
    proto::HeartbeatReply& body = *reply.envelope.mutable_heartbeat_reply();
    for (const uint64_t node : away) {
      proto::AwayWorker& worker = *body.add_away();
      worker.set_node(node);
      worker.mutable_away()->set_reason("saving");
      worker.mutable_away()->set_left_ms(30'000);
    }
    actor_.Receive(now_, reply, outbox_);
  };
  hear({Ring::kFirstNode + 1});
  EXPECT_EQ(actor_.group().deadline_floor(), now_ + absl::Seconds(30) + absl::Minutes(1));
  hear({});
  EXPECT_EQ(actor_.group().deadline_floor(), now_ + absl::Minutes(1)) << "since it is back";
}

}  // namespace
}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/scheduler_actor.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug_switch.h"
#include "common/cluster/limits.h"
#include "common/cluster/view.h"
#include "common/contract/contract.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/log/published_views.h"
#include "scheduler/log/scheduler_log.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

class SchedulerActorTest : public ::testing::Test {
 protected:
  SchedulerActorTest() { Start(std::nullopt); }

  void Start(std::optional<proto::LogRecord> recovered) {
    pending_appends_.clear();
    actor_ = std::make_unique<SchedulerActor>(config_, std::move(recovered));
    Outbox outbox;
    actor_->Wake(now_, outbox);
    Take(outbox);
  }

  // Appends go to pending_appends_, other messages to sent_.
  void Take(Outbox& outbox) {
    for (Message& message : outbox.TakeMessages()) {
      if (message.envelope.has_disk_append()) {
        EXPECT_EQ(message.to(), (Address{kSchedulerNode, kDiskLoop}));
        log_ += message.envelope.disk_append().record();
        pending_appends_.push_back(std::move(message));
      } else {
        sent_.push_back(std::move(message));
      }
    }
  }
  void Receive(const Message& message) {
    Outbox outbox;
    actor_->Receive(now_, message, outbox);
    Take(outbox);
  }
  void AnswerDisk(const absl::Status& status = absl::OkStatus()) {
    ASSERT_EQ(pending_appends_.size(), 1) << "one record at a time";
    Message reply = MakeReply(pending_appends_[0]);
    reply.envelope.mutable_header()->set_node(kSchedulerNode.value());
    reply.envelope.mutable_disk_durable()->set_index(
        pending_appends_[0].envelope.disk_append().index());
    SetStatus(status, reply);
    pending_appends_.clear();
    Receive(reply);
  }
  void SyncDisk() {
    while (!pending_appends_.empty()) AnswerDisk();
  }
  // Lets time pass in the steps that the actor asks for.
  void Advance(absl::Duration duration) {
    const absl::Time until = now_ + duration;
    while (actor_->NextWake() <= until) {
      now_ = std::max(now_, actor_->NextWake());
      Outbox outbox;
      actor_->Wake(now_, outbox);
      Take(outbox);
      SyncDisk();
    }
    now_ = until;
  }

  struct Sender {
    uint64_t node = 0;
    uint64_t incarnation = 0;
    uint64_t connection = 0;
  };
  Message From(const Sender& sender) {
    Message message;
    message.set_to({kSchedulerNode, 0});
    message.connection = sender.connection;
    proto::Header& header = *message.envelope.mutable_header();
    header.set_node(sender.node);
    header.set_incarnation(sender.incarnation);
    header.set_request_id(++request_id_);
    if (sender.node != 0) header.set_job(JobFingerprint("job"));
    return message;
  }
  Message RegisterRequest(uint64_t incarnation, proto::Role role) {
    Message message = From({.incarnation = incarnation, .connection = incarnation});
    proto::RegisterRequest& request = *message.envelope.mutable_register_request();
    request.set_job_name("job");
    request.set_role(role);
    request.set_rank(-1);
    if (role == proto::SERVER) {
      request.add_endpoints("");
      request.add_endpoints("tcp://127.0.0.1:1");
    }
    return message;
  }
  Message TakeOnlyReply() {
    EXPECT_EQ(sent_.size(), 1);
    Message reply = sent_.empty() ? Message() : sent_.back();
    sent_.clear();
    return reply;
  }
  Message Call(Message request) {
    const uint64_t id = request.envelope.header().request_id();
    sent_.clear();
    Receive(request);
    SyncDisk();
    Message reply = TakeOnlyReply();
    EXPECT_EQ(reply.envelope.header().request_id(), id);
    return reply;
  }
  // Server: node 2, incarnation 12; worker: node 3, incarnation 13.
  void RegisterAll() {
    EXPECT_TRUE(StatusOf(Call(RegisterRequest(12, proto::SERVER))).ok());
    EXPECT_TRUE(StatusOf(Call(RegisterRequest(13, proto::WORKER))).ok());
  }
  Message CreateTable(const Sender& sender) {
    Message message = From(sender);
    proto::TableSpec& spec = *message.envelope.mutable_create_table_request()->mutable_spec();
    spec.set_name("t");
    spec.set_data_type(proto::FLOAT32);
    spec.add_shape(10);
    spec.mutable_learning_rate()->set_base(0.1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    return message;
  }
  Message Heartbeat(const Sender& sender) {
    Message message = From(sender);
    message.envelope.mutable_heartbeat_request();
    return message;
  }
  Message CreateTableWithGate() {
    Message message = CreateTable(worker_);
    proto::NormGate& gate =
        *message.envelope.mutable_create_table_request()->mutable_spec()->mutable_norm_gate();
    gate.set_factor(20);
    gate.set_quarantine_after(8);
    return message;
  }
  // Of the server, with a view of `epoch`: what group 1 has pushed to the table with a gate.
  Message HeartbeatWithWildPushes(uint64_t epoch, uint64_t in_row) {
    Message message = Heartbeat(server_);
    message.envelope.mutable_header()->set_epoch(epoch);
    proto::GatedProducer& gated =
        *message.envelope.mutable_heartbeat_request()->mutable_load()->add_gated();
    gated.set_is_group(true);
    gated.set_id(1);
    gated.set_table(1);
    gated.set_beyond_in_row(in_row);
    gated.set_usual(8000);
    gated.set_usual_of_others(0.1);
    return message;
  }
  Message Watch(const Sender& sender, uint64_t known_epoch) {
    Message message = From(sender);
    message.envelope.mutable_watch_view_request()->set_known_epoch(known_epoch);
    return message;
  }

  const Sender server_{.node = 2, .incarnation = 12};
  const Sender worker_{.node = 3, .incarnation = 13};
  Config config_{.job_name = "job", .servers = 1, .groups = 1, .workers_per_group = 1};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
  std::unique_ptr<SchedulerActor> actor_;
  std::vector<Message> sent_;
  std::vector<Message> pending_appends_;
  std::string log_;
  uint64_t request_id_ = 0;
};

TEST_F(SchedulerActorTest, NothingIsKnownBeforeItIsDurable) {
  Receive(Watch({.connection = 77}, 0));
  Receive(RegisterRequest(12, proto::SERVER));
  EXPECT_TRUE(sent_.empty());
  EXPECT_EQ(actor_->published().epoch(), 0);
  // A retry of the same request must not be answered early either.
  Receive(RegisterRequest(12, proto::SERVER));
  // Decided in the meantime: goes into the next record.
  Receive(RegisterRequest(13, proto::WORKER));
  EXPECT_TRUE(sent_.empty());
  ASSERT_EQ(pending_appends_.size(), 1);

  AnswerDisk();
  EXPECT_EQ(actor_->published().epoch(), 1);
  EXPECT_EQ(actor_->published().nodes_size(), 1);
  ASSERT_EQ(sent_.size(), 3) << "two answers for the server, one watch";
  EXPECT_EQ(sent_[0].connection, 12);
  EXPECT_EQ(sent_[0].envelope.register_reply().node(), 2);
  EXPECT_EQ(sent_[1].envelope.register_reply().node(), 2);
  EXPECT_EQ(sent_[2].connection, 77);
  EXPECT_EQ(sent_[2].envelope.watch_view_reply().view().epoch(), 1);

  sent_.clear();
  AnswerDisk();
  const Message reply = TakeOnlyReply();
  EXPECT_EQ(reply.envelope.register_reply().node(), 3);
  EXPECT_EQ(reply.envelope.register_reply().heartbeat_ms(), 500);
  EXPECT_EQ(reply.envelope.register_reply().view().groups_size(), 1);
  EXPECT_TRUE(ClusterView::Make(actor_->published()).ok());
}

TEST_F(SchedulerActorTest, GoodHeartbeatsNeedNoDisk) {
  RegisterAll();
  Receive(CreateTable(worker_));
  sent_.clear();
  Receive(Heartbeat(worker_));
  EXPECT_EQ(TakeOnlyReply().envelope.heartbeat_reply().epoch(), 2);
}

TEST_F(SchedulerActorTest, ServersGetALeaseWithEachAnswer) {
  RegisterAll();
  sent_.clear();
  Message beat = Heartbeat(server_);
  beat.envelope.mutable_heartbeat_request()->mutable_load();
  Receive(beat);
  EXPECT_EQ(TakeOnlyReply().envelope.heartbeat_reply().lease_ms(), 30'000u);
  Receive(Heartbeat(worker_));
  EXPECT_EQ(TakeOnlyReply().envelope.heartbeat_reply().lease_ms(), 0u);
}

// It has stood still, and the next leader counts all leases from its own start.
TEST_F(SchedulerActorTest, WhoMayNotLeadAnyMoreGivesNoLease) {
  RegisterAll();
  actor_->SetLeadsUntil(now_ + absl::Seconds(2));
  Message heartbeat = Heartbeat(server_);
  heartbeat.envelope.mutable_heartbeat_request()->mutable_load();
  EXPECT_EQ(Call(heartbeat).envelope.heartbeat_reply().lease_ms(), 30000u);
  now_ += absl::Seconds(2);
  const Message refused = Call(heartbeat);
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(refused))) << StatusOf(refused);
  EXPECT_EQ(refused.envelope.heartbeat_reply().lease_ms(), 0u);
  actor_->SetLeadsUntil(now_ + absl::Seconds(2));
  EXPECT_EQ(Call(heartbeat).envelope.heartbeat_reply().lease_ms(), 30000u);
}

TEST_F(SchedulerActorTest, SilenceIsDeathAndTheDeadAreFenced) {
  RegisterAll();
  Receive(Watch(server_, 2));
  sent_.clear();
  for (int beat = 0; beat < 8; ++beat) {
    Advance(absl::Milliseconds(500));
    Receive(Heartbeat(server_));
  }
  Advance(absl::Milliseconds(100));
  EXPECT_EQ(actor_->published().epoch(), 3);
  EXPECT_EQ(actor_->published().groups(0).state(), proto::Group::BROKEN);
  EXPECT_EQ(std::count_if(sent_.begin(), sent_.end(),
                          [](const Message& m) { return m.envelope.has_watch_view_reply(); }),
            1);
  const absl::Status status = StatusOf(Call(Heartbeat(worker_)));
  EXPECT_TRUE(absl::IsAborted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("declared dead at epoch 3"));
}

TEST_F(SchedulerActorTest, WhoWaitedForASlowDiskIsNotSilent) {
  Receive(RegisterRequest(21, proto::SERVER));
  const auto wait = [&](absl::Duration duration) {
    const absl::Time until = now_ + duration;
    while (now_ < until) {
      now_ += absl::Milliseconds(100);
      Outbox outbox;
      actor_->Wake(now_, outbox);
      Take(outbox);
    }
  };
  wait(absl::Milliseconds(2400));
  AnswerDisk();
  const uint64_t node = TakeOnlyReply().envelope.register_reply().node();
  wait(absl::Milliseconds(2400));
  EXPECT_TRUE(StatusOf(Call(Heartbeat({.node = node, .incarnation = 21}))).ok());
}

TEST_F(SchedulerActorTest, OwnPausesKillNobody) {
  RegisterAll();
  now_ += absl::Minutes(5);
  Outbox outbox;
  actor_->Wake(now_, outbox);
  Take(outbox);
  EXPECT_TRUE(pending_appends_.empty());
  EXPECT_EQ(actor_->published().nodes(0).state(), proto::Node::ALIVE);
  Advance(absl::Seconds(3));
  EXPECT_EQ(actor_->published().nodes(0).state(), proto::Node::DEAD) << "but silence goes on";
}

TEST_F(SchedulerActorTest, TablesNeedAllServers) {
  EXPECT_TRUE(StatusOf(Call(RegisterRequest(13, proto::WORKER))).ok());
  const Sender worker{.node = 2, .incarnation = 13};
  const absl::Status early = StatusOf(Call(CreateTable(worker)));
  EXPECT_TRUE(absl::IsUnavailable(early));
  EXPECT_THAT(std::string(early.message()), HasSubstr("waiting for server-0"));
  EXPECT_TRUE(StatusOf(Call(RegisterRequest(12, proto::SERVER))).ok());
  const Message reply = Call(CreateTable(worker));
  ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
  EXPECT_EQ(reply.envelope.create_table_reply().table(), 1);
  EXPECT_EQ(reply.envelope.create_table_reply().view().tables_size(), 1);

  Message list = From({});
  list.envelope.mutable_list_tables_request();
  EXPECT_EQ(Call(list).envelope.list_tables_reply().tables_size(), 1);
  Message drop = From(worker);
  drop.envelope.mutable_drop_table_request()->set_name("t");
  const Message dropped = Call(drop);
  EXPECT_EQ(dropped.envelope.drop_table_reply().epoch(), actor_->published().epoch());
  EXPECT_EQ(actor_->published().tables_size(), 0);
}

TEST_F(SchedulerActorTest, AnewServerInheritsTheShardsOfADeadOne) {
  RegisterAll();
  ASSERT_TRUE(StatusOf(Call(CreateTable(worker_))).ok());
  Advance(absl::Seconds(3));
  const Message reply = Call(RegisterRequest(22, proto::SERVER));
  const Sender heir{.node = reply.envelope.register_reply().node(), .incarnation = 22};
  EXPECT_EQ(actor_->published().tables(0).shards(0).chain(0).node(), 2u)
      << "its lease has not ended";
  for (int beat = 0; beat < 60; ++beat) {
    Advance(absl::Milliseconds(500));
    Call(Heartbeat(heir));
  }
  const proto::ClusterView& view = actor_->published();
  EXPECT_EQ(view.tables(0).shards(0).chain(0).node(), heir.node);
  EXPECT_EQ(view.tables(0).shards(0).generation(), view.epoch());
  Message ask = From({});
  ask.envelope.mutable_status_request();
  const Message status = Call(ask);
  const auto& events = status.envelope.status_reply().events();
  EXPECT_THAT(events.rbegin()->text(),
              HasSubstr("shards: 1 lost with node 2, re-initialized on server-0"));
}

TEST_F(SchedulerActorTest, RefusesStrangersAndOtherJobs) {
  RegisterAll();
  EXPECT_TRUE(absl::IsFailedPrecondition(StatusOf(Call(CreateTable({})))));
  EXPECT_TRUE(absl::IsAborted(StatusOf(Call(CreateTable({.node = 99, .incarnation = 1})))));
  EXPECT_TRUE(absl::IsAborted(StatusOf(Call(CreateTable({.node = 3, .incarnation = 1})))));
  Message other = CreateTable(worker_);
  other.envelope.mutable_header()->set_job(1);
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(Call(other))));
  Message forged = From(worker_);
  forged.envelope.mutable_disk_durable()->set_index(100);
  Receive(forged);
  Receive(From(worker_));
  EXPECT_TRUE(sent_.empty());
}

TEST_F(SchedulerActorTest, StrangersAreNotToldOfIncarnations) {
  RegisterAll();
  const auto incarnations = [](const proto::ClusterView& view) {
    uint64_t sum = 0;
    for (const proto::Node& node : view.nodes()) sum += node.incarnation();
    return sum;
  };
  const auto status_of = [&](const Sender& sender) {
    Message request = From(sender);
    request.envelope.mutable_status_request();
    return incarnations(Call(request).envelope.status_reply().view());
  };
  const auto watched = [&](const Sender& sender) {
    Message reply = Call(Watch(sender, 0));
    UnpackWatchReply(reply);
    return incarnations(reply.envelope.watch_view_reply().view());
  };
  EXPECT_EQ(status_of({}), 0u);
  EXPECT_EQ(watched({.connection = 7}), 0u);
  EXPECT_EQ(status_of(worker_), 25u);
  EXPECT_EQ(watched(worker_), 25u);
}

// What it says of itself counts for the groups of all workers.
TEST_F(SchedulerActorTest, StepsThatNoGroupReachesAreNotBelieved) {
  RegisterAll();
  Message beat = Heartbeat(worker_);
  proto::Progress& progress = *beat.envelope.mutable_heartbeat_request()->mutable_progress();
  progress.set_step(5);
  Call(beat);
  for (const auto set : {&proto::Progress::set_step, &proto::Progress::set_group_step,
                         &proto::Progress::set_unconfirmed_step}) {
    proto::Progress wild;
    wild.set_step(6);
    (wild.*set)(kPushSequenceJumpMax + 6);
    progress = wild;
    EXPECT_TRUE(StatusOf(Call(beat)).ok()) << "it lives";
    Message request = From({});
    request.envelope.mutable_status_request();
    const Message status = Call(request);
    for (const proto::NodeStatus& node : status.envelope.status_reply().nodes()) {
      EXPECT_LE(node.progress().step(), 5u);
    }
  }
}

TEST_F(SchedulerActorTest, LeavingIsIdempotent) {
  RegisterAll();
  Message leave = From(worker_);
  leave.envelope.mutable_leave_request()->set_reason("done");
  EXPECT_TRUE(StatusOf(Call(leave)).ok());
  EXPECT_EQ(actor_->published().groups(0).state(), proto::Group::DONE);
  EXPECT_TRUE(StatusOf(Call(leave)).ok());
  EXPECT_EQ(actor_->published().epoch(), 3);
}

TEST_F(SchedulerActorTest, RestartContinuesFromTheLog) {
  RegisterAll();
  ASSERT_TRUE(StatusOf(Call(CreateTable(worker_))).ok());
  Message barrier = From(worker_);
  barrier.envelope.mutable_barrier_request()->set_name("b");
  barrier.envelope.mutable_barrier_request()->set_participants(1);
  barrier.envelope.mutable_barrier_request()->set_participants(2);
  Message other = From(server_);
  *other.envelope.mutable_barrier_request() = barrier.envelope.barrier_request();
  sent_.clear();
  Receive(barrier);
  Receive(other);
  SyncDisk();
  EXPECT_EQ(sent_.size(), 2);

  const auto log = RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()});
  ASSERT_TRUE(log.ok());
  Start(log->newest);
  sent_.clear();
  EXPECT_EQ(actor_->published().epoch(), 3);
  EXPECT_EQ(actor_->published().tables_size(), 1);
  // Its reply may have been lost; alone it could not pass again.
  EXPECT_TRUE(StatusOf(Call(barrier)).ok());
  // Both continue by heartbeats; the silent one is declared dead after the grace.
  for (int beat = 0; beat < 26; ++beat) {
    EXPECT_TRUE(StatusOf(Call(Heartbeat(worker_))).ok());
    Advance(absl::Milliseconds(500));
    sent_.clear();
  }
  EXPECT_EQ(actor_->published().nodes(0).state(), proto::Node::DEAD);
  EXPECT_EQ(actor_->published().nodes(1).state(), proto::Node::ALIVE);
  // New nodes get new ids.
  EXPECT_EQ(Call(RegisterRequest(22, proto::SERVER)).envelope.register_reply().node(), 4);
}

TEST_F(SchedulerActorTest, DecisionsAboutStragglersArePublishedOnceDurable) {
  config_.workers_per_group = 3;
  Start(std::nullopt);
  Call(RegisterRequest(12, proto::SERVER));
  std::vector<Sender> workers;
  for (uint64_t i = 0; i < 3; ++i) {
    Call(RegisterRequest(13 + i, proto::WORKER));
    workers.push_back({.node = 3 + i, .incarnation = 13 + i});
  }
  const uint64_t epoch = actor_->published().epoch();
  bool decided = false;
  for (int beat = 1; beat < 60 && !decided; ++beat) {
    Advance(absl::Milliseconds(500));
    Receive(Heartbeat(server_));
    for (const Sender& worker : workers) {
      Message report = Heartbeat(worker);
      proto::Progress& progress = *report.envelope.mutable_heartbeat_request()->mutable_progress();
      progress.set_step(beat);
      progress.set_samples_per_step(10);
      progress.set_compute_seconds(worker.node == 4 ? 0.3 : 0.1);
      progress.set_wait_seconds(beat);
      sent_.clear();
      Receive(report);
      EXPECT_EQ(TakeOnlyReply().envelope.heartbeat_reply().epoch(), epoch) << "at once";
      decided = decided || !pending_appends_.empty();
    }
  }
  ASSERT_TRUE(decided);
  EXPECT_TRUE(actor_->published().groups(0).shares().empty());
  SyncDisk();
  EXPECT_EQ(actor_->published().epoch(), epoch + 1);
  EXPECT_EQ(actor_->published().groups(0).shares_size(), 3);

  Message ask = From({});
  ask.envelope.mutable_status_request();
  const Message answer = Call(ask);
  const proto::StatusReply& status = answer.envelope.status_reply();
  EXPECT_THAT(status.events().rbegin()->text(), HasSubstr("group 1 divides its samples"));
  EXPECT_THAT(status.events().rbegin()->text(), HasSubstr("worker-1 takes 30 ms per sample"));
  EXPECT_EQ(status.nodes(2).pace().state(), proto::Pace::STRAGGLER);
}

TEST_F(SchedulerActorTest, AGroupThatAMemberLeftGoesOnInTime) {
  config_.workers_per_group = 2;
  Start(std::nullopt);
  Call(RegisterRequest(12, proto::SERVER));
  Call(RegisterRequest(13, proto::WORKER));
  Call(RegisterRequest(14, proto::WORKER));
  Message leave = From(worker_);
  leave.envelope.mutable_leave_request()->set_reason("signal 15");
  Call(leave);
  EXPECT_EQ(actor_->published().groups(0).generation(), 1u);
  Advance(absl::Milliseconds(1600));
  EXPECT_EQ(actor_->published().groups(0).generation(), 2u);
  ASSERT_EQ(actor_->published().groups(0).members_size(), 1);
  EXPECT_EQ(actor_->published().groups(0).members(0), 4u);
}

TEST_F(SchedulerActorTest, OtherOptionsHoldFromThenOn) {
  config_.workers_per_group = 2;
  Start(std::nullopt);
  Call(RegisterRequest(12, proto::SERVER));
  Call(RegisterRequest(13, proto::WORKER));
  Call(RegisterRequest(14, proto::WORKER));
  Config next = config_;
  next.regroup_after = absl::Seconds(10);
  actor_->SetOptions(next);
  Message leave = From(worker_);
  leave.envelope.mutable_leave_request()->set_reason("signal 15");
  Call(leave);
  // The test sends no heartbeats, so all nodes are dead after 2.5 s.
  Advance(absl::Milliseconds(1600));
  EXPECT_EQ(actor_->published().groups(0).generation(), 1u);
  next.regroup_after = absl::Seconds(1);
  actor_->SetOptions(next);
  Advance(absl::Milliseconds(500));
  EXPECT_EQ(actor_->published().groups(0).generation(), 2u);
}

TEST_F(SchedulerActorTest, MessagesThatComeAllTheTimePutNothingOff) {
  config_.workers_per_group = 2;
  Start(std::nullopt);
  Call(RegisterRequest(12, proto::SERVER));
  Call(RegisterRequest(13, proto::WORKER));
  Call(RegisterRequest(14, proto::WORKER));
  Message leave = From(worker_);
  leave.envelope.mutable_leave_request()->set_reason("signal 15");
  Call(leave);
  // As in a large cluster, some node's heartbeat arrives at every moment.
  for (int i = 0; i < 40; ++i) {
    Advance(absl::Milliseconds(50));
    Receive(Heartbeat(server_));
    Receive(Heartbeat({.node = 4, .incarnation = 14}));
  }
  EXPECT_EQ(actor_->published().groups(0).generation(), 2u);
}

TEST_F(SchedulerActorTest, NodesThatTakeChangesGetThem) {
  RegisterAll();
  const auto watch = [this](const Sender& sender, uint64_t known_epoch, bool takes_changes) {
    Message request = Watch(sender, known_epoch);
    request.envelope.mutable_watch_view_request()->set_takes_changes(takes_changes);
    Receive(request);
  };
  sent_.clear();
  watch(server_, 2, true);
  watch(worker_, 2, false);
  watch({.connection = 77}, 2, true);
  Receive(RegisterRequest(14, proto::CLIENT));
  SyncDisk();
  ASSERT_EQ(sent_.size(), 4);
  for (Message& reply : sent_) UnpackWatchReply(reply);
  const proto::WatchViewReply& changed = sent_[1].envelope.watch_view_reply();
  ASSERT_TRUE(changed.has_change() && !changed.has_view());
  EXPECT_EQ(changed.change().since(), 2);
  EXPECT_EQ(changed.change().changed().epoch(), 3);
  ASSERT_EQ(changed.change().changed().nodes_size(), 1);
  EXPECT_EQ(changed.change().changed().nodes(0).incarnation(), 14);
  // A node of an earlier version, and a stranger, who learns of no incarnation.
  EXPECT_EQ(sent_[2].envelope.watch_view_reply().view().nodes_size(), 3);
  EXPECT_EQ(sent_[3].envelope.watch_view_reply().view().nodes_size(), 3);
  EXPECT_EQ(sent_[3].envelope.watch_view_reply().view().nodes(2).incarnation(), 0);
  // A view that the scheduler has published before it was restarted.
  Start(RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()})->newest);
  sent_.clear();
  watch(server_, 2, true);
  ASSERT_EQ(sent_.size(), 1);
  UnpackWatchReply(sent_[0]);
  EXPECT_TRUE(sent_[0].envelope.watch_view_reply().has_view());
}

TEST_F(SchedulerActorTest, TheRepliesToRegistrationsInALargeClusterHaveNoView) {
  Message last;
  for (uint64_t incarnation = 1; incarnation <= 257; ++incarnation) {
    EXPECT_TRUE(last.envelope.register_reply().has_view() || incarnation == 1);
    last = Call(RegisterRequest(incarnation, proto::CLIENT));
    ASSERT_TRUE(StatusOf(last).ok()) << StatusOf(last);
  }
  EXPECT_FALSE(last.envelope.register_reply().has_view());
}

TEST_F(SchedulerActorTest, WatchesAreAnsweredAtTheirDeadlineAndTheNewestCounts) {
  Receive(Watch({.connection = 7}, 0));
  Receive(Watch({.connection = 7}, 0));
  EXPECT_TRUE(sent_.empty());
  Advance(absl::Seconds(31));
  const Message reply = TakeOnlyReply();
  EXPECT_EQ(reply.envelope.watch_view_reply().view().epoch(), 0);
  EXPECT_EQ(actor_->NextWake(), absl::InfiniteFuture());
}

TEST_F(SchedulerActorTest, UnfitDiskRefusesEverythingAndPublishesNothing) {
  Receive(RegisterRequest(12, proto::SERVER));
  AnswerDisk(absl::ResourceExhaustedError("no space left"));
  const absl::Status status = StatusOf(TakeOnlyReply());
  EXPECT_TRUE(absl::IsUnavailable(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("no space left"));
  EXPECT_EQ(actor_->published().epoch(), 0);
  EXPECT_TRUE(absl::IsUnavailable(StatusOf(Call(RegisterRequest(13, proto::WORKER)))));
  EXPECT_FALSE(actor_->disk_failure().ok());
}

TEST_F(SchedulerActorTest, AnUnfitDiskIsTriedAgainAndKillsNobody) {
  RegisterAll();
  const auto fail_for = [this](absl::Duration duration) {
    for (const absl::Time until = now_ + duration; now_ < until;) {
      now_ = std::min(until, actor_->NextWake());
      Outbox outbox;
      actor_->Wake(now_, outbox);
      Take(outbox);
      AnswerDisk(absl::ResourceExhaustedError("no space left"));
      const Message reply = Call(Heartbeat({.node = 2, .incarnation = 12}));
      ASSERT_TRUE(StatusOf(reply).ok()) << "a lease would end: " << StatusOf(reply);
    }
  };
  const auto state_of = [this](uint64_t node) {
    for (const proto::Node& found : actor_->published().nodes()) {
      if (found.id() == node) return found.state();
    }
    return proto::Node::STATE_UNSPECIFIED;
  };
  sent_.clear();
  Receive(CreateTable({.node = 3, .incarnation = 13}));
  Receive(RegisterRequest(14, proto::CLIENT));  // its reply waits for the next record
  AnswerDisk(absl::ResourceExhaustedError("no space left"));
  ASSERT_EQ(sent_.size(), 2u);
  for (const Message& reply : sent_) EXPECT_TRUE(absl::IsUnavailable(StatusOf(reply)));
  sent_.clear();
  const uint64_t epoch = actor_->published().epoch();
  // The server is heard of all the time, and the worker is not.
  fail_for(absl::Minutes(10));
  EXPECT_EQ(actor_->published().epoch(), epoch);
  EXPECT_EQ(actor_->published().tables_size(), 0);

  // The disk is well: all that was decided is durable, and nobody is dead. Nodes that were refused
  // come again.
  Advance(absl::Milliseconds(500));
  EXPECT_TRUE(actor_->disk_failure().ok());
  EXPECT_EQ(actor_->published().tables_size(), 1);
  EXPECT_EQ(state_of(3), proto::Node::ALIVE);
  ASSERT_TRUE(StatusOf(Call(CreateTable({.node = 3, .incarnation = 13}))).ok());
  EXPECT_EQ(actor_->published().tables_size(), 1);
  // Silence counts again, and later of a node that does not know yet that it has joined.
  Advance(absl::Seconds(10));
  EXPECT_EQ(state_of(3), proto::Node::DEAD);
  const Message joined = Call(RegisterRequest(14, proto::CLIENT));
  ASSERT_TRUE(StatusOf(joined).ok()) << StatusOf(joined);
  EXPECT_EQ(joined.envelope.register_reply().node(), 4u);
}

// It was registered while the disk failed, and died before it knew: its rank is free in the end.
TEST_F(SchedulerActorTest, ANodeThatWasRefusedAndNeverAsksAgainIsDead) {
  const auto state_of = [this](uint64_t node) {
    for (const proto::Node& found : actor_->published().nodes()) {
      if (found.id() == node) return found.state();
    }
    return proto::Node::STATE_UNSPECIFIED;
  };
  // One whose record fails, and one that has come meanwhile.
  Receive(RegisterRequest(21, proto::SERVER));
  Receive(RegisterRequest(22, proto::WORKER));
  AnswerDisk(absl::ResourceExhaustedError("no space left"));
  ASSERT_EQ(sent_.size(), 2u);
  for (const Message& reply : sent_) EXPECT_TRUE(absl::IsUnavailable(StatusOf(reply)));
  Advance(absl::Seconds(5));
  EXPECT_EQ(state_of(2), proto::Node::ALIVE);
  EXPECT_EQ(state_of(3), proto::Node::ALIVE);
  Advance(absl::Seconds(10));
  EXPECT_EQ(state_of(2), proto::Node::DEAD);
  EXPECT_EQ(state_of(3), proto::Node::DEAD);
}

TEST_F(SchedulerActorTest, AContractIsSwitchedDurablyAndInTheEvents) {
  RegisterAll();
  ASSERT_TRUE(StatusOf(Call(CreateTable({.node = 3, .incarnation = 13}))).ok());
  Message request = From({});  // A stranger, by hand.
  request.envelope.mutable_set_contract_request()->set_name("t");
  *request.envelope.mutable_set_contract_request()->mutable_contract() =
      ContractToProto(*ParseContract("ssp:7"));
  sent_.clear();
  Receive(request);
  EXPECT_TRUE(sent_.empty()) << "answered before it was durable";
  SyncDisk();
  const Message reply = TakeOnlyReply();
  ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
  const uint64_t epoch = reply.envelope.set_contract_reply().epoch();
  EXPECT_EQ(Call(request).envelope.set_contract_reply().epoch(), epoch);

  Message status = From({});
  status.envelope.mutable_status_request();
  const proto::StatusReply now = Call(status).envelope.status_reply();
  EXPECT_EQ(now.view().epoch(), epoch);
  EXPECT_EQ(now.view().tables(0).contract_epoch(), epoch);
  EXPECT_THAT(now.events().rbegin()->text(), HasSubstr("to ssp:7: asked by hand"));

  Start(RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()})->newest);
  const proto::StatusReply recovered = Call(status).envelope.status_reply();
  EXPECT_EQ(recovered.view().tables(0).contract().staleness(), 7u);
}

// A job whose groups are planned: a server, and four workers that say on which host they are.
class SchedulerActorTopologyTest : public SchedulerActorTest {
 protected:
  static constexpr uint64_t kFirstWorker = 3;
  static constexpr uint64_t kWorkers = 4;

  SchedulerActorTopologyTest() {
    config_.workers_per_group = kWorkers;
    config_.plans_groups = true;
    Start(std::nullopt);
    Call(RegisterRequest(12, proto::SERVER));
    for (uint64_t i = 0; i < kWorkers; ++i) {
      Message request = RegisterRequest(20 + i, proto::WORKER);
      request.envelope.mutable_register_request()->set_labels(absl::StrCat("z//host-", i));
      Call(request);
    }
    sent_.clear();
  }

  // What the scheduler asks the worker to measure.
  proto::ProbeOrder Beat(uint64_t worker, const proto::ProbeReport& report = {}) {
    Message beat = Heartbeat({.node = kFirstWorker + worker, .incarnation = 20 + worker});
    proto::HeartbeatRequest& body = *beat.envelope.mutable_heartbeat_request();
    body.mutable_progress();
    if (report.order() != 0) *body.mutable_probes() = report;
    return Call(beat).envelope.heartbeat_reply().probe();
  }
  // Even workers are near each other, and so are odd ones. False: one was asked for nothing.
  bool Measure() {
    for (uint64_t worker = 0; worker < kWorkers; ++worker) {
      const proto::ProbeOrder order = Beat(worker);
      if (order.order() == 0) return false;
      proto::ProbeReport report;
      report.set_order(order.order());
      for (const uint64_t peer : order.peers()) {
        proto::ProbedLink& link = *report.add_links();
        link.set_node(peer);
        link.set_round_trip_seconds((peer - kFirstWorker) % 2 == worker % 2 ? 0.0002 : 0.002);
      }
      EXPECT_EQ(Beat(worker, report).order(), 0u);
    }
    return true;
  }
  std::vector<std::string> Labels() const {
    std::vector<std::string> labels;
    for (const proto::Node& node : actor_->published().nodes()) {
      if (node.role() == proto::WORKER) labels.push_back(node.labels());
    }
    return labels;
  }

  // By what the scheduler plans the groups of a job with a table.
  std::vector<std::string> PlanSources() {
    Call(CreateTable({.node = kFirstWorker, .incarnation = 20}));
    const proto::StatusReply status = actor_->Status(now_);
    return {status.plan().sources().begin(), status.plan().sources().end()};
  }

  const std::vector<std::string> measured_ = {"z/measured-0/host-0", "z/measured-1/host-1",
                                              "z/measured-0/host-2", "z/measured-1/host-3"};
};

TEST_F(SchedulerActorTopologyTest, RacksAreNamedBeforeTheFirstGroupsForm) {
  EXPECT_TRUE(actor_->published().groups().empty());
  ASSERT_TRUE(Measure());
  EXPECT_TRUE(actor_->published().groups().empty());
  Advance(absl::Milliseconds(500));
  EXPECT_EQ(Labels(), measured_);
  ASSERT_EQ(actor_->published().groups_size(), 1);
  // Near members are neighbors.
  EXPECT_THAT(actor_->published().groups(0).members(), testing::ElementsAre(3, 5, 4, 6));
  EXPECT_THAT(log_, HasSubstr("2 racks measured: worker-0, worker-2 | worker-1, worker-3"));
  EXPECT_THAT(PlanSources(), testing::Contains("links: 6 measured between workers"));
}

TEST_F(SchedulerActorTopologyTest, GroupsFormByLabelsWhenWorkersDoNotReport) {
  absl::Time formed = absl::InfiniteFuture();
  const absl::Time begun = now_;
  for (int beat = 0; beat < 20; ++beat) {
    Call(Heartbeat(server_));
    for (uint64_t worker = 0; worker < kWorkers; ++worker) Beat(worker);
    Advance(absl::Milliseconds(500));
    if (!actor_->published().groups().empty()) formed = std::min(formed, now_);
  }
  EXPECT_GE(formed - begun, absl::Seconds(5));
  EXPECT_LE(formed - begun, absl::Seconds(6));
}

TEST_F(SchedulerActorTopologyTest, ALateWorkerGetsItsRackBeforeAGroup) {
  ASSERT_TRUE(Measure());
  Advance(absl::Milliseconds(500));
  Message request = RegisterRequest(20 + kWorkers, proto::WORKER);
  request.envelope.mutable_register_request()->set_labels("z//host-4");
  Call(request);
  const auto beat_all = [&](const proto::ProbeReport& of_newcomer) {
    Call(Heartbeat(server_));
    for (uint64_t worker = 0; worker < kWorkers; ++worker) Beat(worker);
    const proto::ProbeOrder order = Beat(kWorkers, of_newcomer);
    Advance(absl::Milliseconds(500));
    return order;
  };
  proto::ProbeOrder order;
  for (int beat = 0; beat < 5; ++beat) order = beat_all({});
  EXPECT_EQ(actor_->published().groups(0).members_size(), 4);
  proto::ProbeReport report;
  report.set_order(order.order());
  for (const uint64_t peer : order.peers()) {
    proto::ProbedLink& link = *report.add_links();
    link.set_node(peer);
    link.set_round_trip_seconds((peer - kFirstWorker) % 2 == 0 ? 0.0002 : 0.002);
  }
  for (int beat = 0; beat < 3; ++beat) beat_all(report);
  EXPECT_EQ(Labels().back(), "z/measured-0/host-4");
  EXPECT_EQ(actor_->published().groups(0).members_size(), 5);
}

TEST_F(SchedulerActorTopologyTest, AfterARestartLabelsStayAndWorkersAreAskedAgain) {
  ASSERT_TRUE(Measure());
  Advance(absl::Milliseconds(500));
  Start(RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()})->newest);
  EXPECT_EQ(Labels(), measured_);
  EXPECT_TRUE(Measure());
  Advance(absl::Milliseconds(500));
  EXPECT_EQ(Labels(), measured_);
  EXPECT_EQ(actor_->published().groups_size(), 1);
  EXPECT_THAT(PlanSources(), testing::Contains("links: 6 measured between workers"));
}

TEST_F(SchedulerActorTest, FinishedWorkIsDurableBeforeItIsAnsweredAndSurvivesARestart) {
  RegisterAll();
  const Sender worker{.node = 3, .incarnation = 13};
  Message request = From(worker);
  proto::WorkRequest& work = *request.envelope.mutable_work_request();
  work.set_name("digits");
  work.set_examples(8);
  work.set_item_examples(4);
  work.set_passes(1);
  work.set_wanted(2);
  const Message given = Call(request);
  ASSERT_TRUE(StatusOf(given).ok()) << StatusOf(given);
  ASSERT_EQ(given.envelope.work_reply().items_size(), 2);

  request.envelope.mutable_header()->set_request_id(++request_id_);
  work.set_wanted(0);
  *work.add_finished() = given.envelope.work_reply().items(0);
  now_ += DataDispatcher::kRecordInterval;
  sent_.clear();
  Receive(request);
  EXPECT_TRUE(sent_.empty()) << "answered before it was durable";
  SyncDisk();
  EXPECT_EQ(TakeOnlyReply().envelope.work_reply().examples_finished(), 4u);

  Start(RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()})->newest);
  request.envelope.mutable_header()->set_request_id(++request_id_);
  work.clear_finished();
  *work.add_finished() = given.envelope.work_reply().items(1);
  EXPECT_TRUE(Call(request).envelope.work_reply().done());
}

TEST_F(SchedulerActorTest, AQuarantineIsDurableAndOutlivesARestart) {
  RegisterAll();
  Message request = From({});
  request.envelope.mutable_quarantine_request()->set_producer("group-1");
  sent_.clear();
  Receive(request);
  EXPECT_TRUE(sent_.empty()) << "answered before it was durable";
  EXPECT_EQ(actor_->published().quarantined_size(), 0);
  SyncDisk();
  const Message reply = TakeOnlyReply();
  ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
  EXPECT_EQ(reply.envelope.quarantine_reply().epoch(), actor_->published().epoch());

  Start(RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()})->newest);
  ASSERT_EQ(actor_->published().quarantined_size(), 1);
  EXPECT_EQ(actor_->published().quarantined(0).reason(), "by request, asked by hand");
  Message release = From(worker_);
  release.envelope.mutable_quarantine_request()->set_producer("group-1");
  release.envelope.mutable_quarantine_request()->set_release(true);
  EXPECT_TRUE(StatusOf(Call(release)).ok());
  EXPECT_EQ(actor_->published().quarantined_size(), 0);
  EXPECT_TRUE(absl::IsNotFound(StatusOf(Call(release))));
  Message ask = From({});
  ask.envelope.mutable_status_request();
  EXPECT_EQ(Call(ask).envelope.status_reply().events().rbegin()->text(),
            "group-1 released from quarantine: asked by node 3");
}

TEST_F(SchedulerActorTest, ReportsQuarantineAProducerUntilItHasEnded) {
  RegisterAll();
  ASSERT_TRUE(StatusOf(Call(CreateTableWithGate())).ok());
  Call(HeartbeatWithWildPushes(actor_->published().epoch(), 8));
  ASSERT_EQ(actor_->published().quarantined_size(), 1);
  EXPECT_THAT(actor_->published().quarantined(0).reason(), HasSubstr("8 pushes in a row"));
  EXPECT_EQ(actor_->published().quarantined(0).epoch(), actor_->published().epoch());

  Message goodbye = From(worker_);
  goodbye.envelope.mutable_leave_request();
  EXPECT_TRUE(StatusOf(Call(goodbye)).ok());
  Advance(absl::Seconds(1));
  EXPECT_EQ(actor_->published().quarantined_size(), 0);
}

TEST_F(SchedulerActorTest, PushesFromBeforeARestartQuarantineNobody) {
  RegisterAll();
  ASSERT_TRUE(StatusOf(Call(CreateTableWithGate())).ok());
  Start(RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()})->newest);
  const uint64_t epoch = actor_->published().epoch();
  Call(HeartbeatWithWildPushes(epoch, 100));
  Advance(absl::Seconds(1));
  Call(HeartbeatWithWildPushes(epoch, 101));
  Advance(absl::Seconds(1));
  Call(HeartbeatWithWildPushes(epoch - 1, 200));
  Call(HeartbeatWithWildPushes(epoch, 108));
  EXPECT_EQ(actor_->published().quarantined_size(), 0);
  Call(HeartbeatWithWildPushes(epoch, 109));
  EXPECT_EQ(actor_->published().quarantined_size(), 1);
}

// Two or more servers (nodes 2, 3, …; incarnations 12, 13, …), and a table of four shards.
class SchedulerChainsTest : public SchedulerActorTest {
 protected:
  SchedulerChainsTest() {
    config_.servers = 2;
    config_.groups = 0;
    Start(std::nullopt);
    for (uint64_t i = 0; i < 2; ++i) AddServer();
    Message request = CreateTable(servers_[0]);
    proto::TableSpec& spec = *request.envelope.mutable_create_table_request()->mutable_spec();
    spec.set_shape(0, 64);
    spec.set_shard_bytes(64);
    EXPECT_TRUE(StatusOf(Call(request)).ok());
  }
  ~SchedulerChainsTest() override { PlantBug(PlantedBug::kNone); }

  void AddServer() {
    const uint64_t incarnation = 12 + servers_.size();
    const Message reply = Call(RegisterRequest(incarnation, proto::SERVER));
    ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
    servers_.push_back({.node = reply.envelope.register_reply().node(),
                        .incarnation = incarnation,
                        .connection = incarnation});
    CheckReply(reply.envelope.register_reply().view());
  }
  // A view in a reply is the one that is published under its epoch.
  void CheckReply(const proto::ClusterView& view) {
    EXPECT_EQ(view.SerializeAsString(), actor_->published().SerializeAsString());
  }
  Message Drain(const std::string& name) {
    Message message = From({});
    message.envelope.mutable_drain_request()->set_node(name);
    return message;
  }
  // READY for every joining replica, reported by its head. False: there is none.
  bool Ready() {
    bool any = false;
    for (const Sender& server : servers_) {
      Message message = From(server);
      proto::ReplicaReportRequest& request = *message.envelope.mutable_replica_report_request();
      for (const proto::Shard& shard : actor_->published().tables(0).shards()) {
        if (shard.chain(0).node() != server.node || !shard.chain().rbegin()->joining()) continue;
        proto::ReplicaReport& report = *request.add_reports();
        report.set_table(1);
        report.set_shard(shard.index());
        report.set_generation(shard.generation());
        report.set_chain_epoch(shard.chain_epoch());
        report.set_node(shard.chain().rbegin()->node());
        report.set_kind(proto::ReplicaReport::READY);
      }
      if (request.reports_size() == 0) continue;
      any = true;
      EXPECT_TRUE(StatusOf(Call(message)).ok());
    }
    return any;
  }
  int Held(uint64_t node) const {
    int held = 0;
    for (const proto::Shard& shard : actor_->published().tables(0).shards()) {
      for (const proto::Replica& replica : shard.chain()) held += replica.node() == node ? 1 : 0;
    }
    return held;
  }
  Message FromProber() {
    Message message = From({.node = kSchedulerNode.value()});
    message.envelope.set_from_loop(kProbeLoop);
    return message;
  }

  std::vector<Sender> servers_;
};

TEST_F(SchedulerChainsTest, ARefusedReconnectPromotesAndRepairsInOneRecord) {
  AddServer();
  while (Ready()) continue;
  const uint64_t epoch = actor_->published().epoch();
  Message lost = FromProber();
  lost.envelope.mutable_connection_lost()->set_node(2);
  lost.envelope.mutable_connection_lost()->set_incarnation(12);
  sent_.clear();
  Receive(lost);
  const Message probe = TakeOnlyReply();
  EXPECT_EQ(probe.to(), (Address{kSchedulerNode, kProbeLoop}));
  EXPECT_EQ(probe.envelope.probe_request().endpoint(), "tcp://127.0.0.1:1");
  EXPECT_TRUE(pending_appends_.empty());

  Message forged = From(servers_[1]);
  const uint64_t request = probe.envelope.header().request_id();
  forged.envelope.mutable_header()->set_request_id(request);
  forged.envelope.mutable_probe_reply()->set_node(2);
  forged.envelope.mutable_probe_reply()->set_incarnation(12);
  forged.envelope.mutable_probe_reply()->set_result(proto::ProbeReply::REFUSED);
  Receive(forged);
  EXPECT_TRUE(pending_appends_.empty()) << "only the own prober is believed";
  Message reply = FromProber();
  reply.envelope.mutable_header()->set_request_id(request);
  *reply.envelope.mutable_probe_reply() = forged.envelope.probe_reply();
  Receive(reply);
  ASSERT_EQ(pending_appends_.size(), 1);
  AnswerDisk();
  EXPECT_TRUE(pending_appends_.empty());
  const proto::ClusterView& view = actor_->published();
  EXPECT_EQ(view.epoch(), epoch + 1);
  EXPECT_EQ(view.nodes(0).state(), proto::Node::DEAD);
  EXPECT_EQ(Held(2), 0);
  for (const proto::Shard& shard : view.tables(0).shards()) {
    EXPECT_EQ(shard.chain_size(), 2);
    EXPECT_FALSE(shard.chain(0).joining());
  }
  Message ask = From({});
  ask.envelope.mutable_status_request();
  const Message answer = Call(ask);
  const auto& events = answer.envelope.status_reply().events();
  EXPECT_THAT(events[events.size() - 2].text(),
              HasSubstr("server-0 (node 2, pid 0 on host ) dead: its host refuses a connection"));
  EXPECT_THAT(events[events.size() - 1].text(), HasSubstr("joining on server-"));
}

TEST_F(SchedulerChainsTest, AProcessThatIsRefusedARankHasItsHolderProbed) {
  Advance(absl::Seconds(2));
  Message request = RegisterRequest(99, proto::SERVER);
  request.envelope.mutable_register_request()->set_rank(0);
  sent_.clear();
  Receive(request);
  ASSERT_EQ(sent_.size(), 2);
  EXPECT_EQ(sent_[0].to(), (Address{kSchedulerNode, kProbeLoop}));
  EXPECT_EQ(sent_[0].envelope.probe_request().node(), 2u);
  EXPECT_TRUE(absl::IsAlreadyExists(StatusOf(sent_[1]))) << StatusOf(sent_[1]);
}

TEST_F(SchedulerChainsTest, ADrainedServerEmptiesAndIsToldByTheView) {
  EXPECT_TRUE(absl::IsNotFound(StatusOf(Call(Drain("server-9")))));
  AddServer();
  while (Ready()) continue;
  sent_.clear();
  Receive(Drain("server-0"));
  EXPECT_TRUE(sent_.empty()) << "answered before it was durable";
  SyncDisk();
  EXPECT_EQ(TakeOnlyReply().envelope.drain_reply().epoch(), actor_->published().epoch());
  EXPECT_TRUE(actor_->published().nodes(0).draining());
  EXPECT_GT(Held(2), 0);
  while (Ready()) continue;
  EXPECT_EQ(Held(2), 0);
  EXPECT_EQ(Held(3), 4);
  EXPECT_EQ(Held(4), 4);
}

// Its drain was canceled while its request to leave was in flight, and it got shards.
TEST_F(SchedulerChainsTest, AGoodbyeByAnOldViewIsRefused) {
  AddServer();
  while (Ready()) continue;
  ASSERT_GT(Held(2), 0);
  uint64_t newest_chain = 0;
  for (const proto::Shard& shard : actor_->published().tables(0).shards()) {
    newest_chain = std::max(newest_chain, shard.chain_epoch());
  }
  Message goodbye = From(servers_[0]);
  goodbye.envelope.mutable_leave_request()->set_reason("drained");
  goodbye.envelope.mutable_header()->set_epoch(1);
  EXPECT_TRUE(absl::IsFailedPrecondition(StatusOf(Call(goodbye))));
  EXPECT_EQ(actor_->published().nodes(0).state(), proto::Node::ALIVE);
  goodbye.envelope.mutable_header()->set_epoch(newest_chain);
  EXPECT_TRUE(StatusOf(Call(goodbye)).ok());
  EXPECT_EQ(actor_->published().nodes(0).state(), proto::Node::LEFT);
}

TEST_F(SchedulerChainsTest, ScalingIsDurableAndDrainsSurplus) {
  AddServer();
  Message request = From({});
  request.envelope.mutable_scale_request()->set_servers(2);
  const Message reply = Call(request);
  ASSERT_TRUE(StatusOf(reply).ok()) << StatusOf(reply);
  EXPECT_EQ(reply.envelope.scale_reply().epoch(), actor_->published().epoch());
  EXPECT_EQ(actor_->published().wanted_servers(), 2u);
  EXPECT_TRUE(actor_->published().nodes(2).draining());
  const auto log = RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()});
  ASSERT_TRUE(log.ok());
  EXPECT_EQ(log->newest->view().wanted_servers(), 2u);
  request.envelope.mutable_scale_request()->set_servers(0);
  EXPECT_TRUE(absl::IsInvalidArgument(StatusOf(Call(request))));
}

TEST_F(SchedulerChainsTest, ARestartLeavesChainsAsTheyAreAndGoesOn) {
  AddServer();
  AddServer();
  const proto::ClusterView before = actor_->published();
  ASSERT_TRUE(before.tables(0).shards(0).chain().rbegin()->joining());
  Start(RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()})->newest);
  EXPECT_EQ(actor_->published().SerializeAsString(), before.SerializeAsString());
  EXPECT_TRUE(pending_appends_.empty());
  // Silence counts only after the grace; then one node is declared dead, not many.
  for (int beat = 0; beat < 20; ++beat) {
    Advance(absl::Milliseconds(500));
    for (size_t i = 0; i < 3; ++i) Call(Heartbeat(servers_[i]));
  }
  EXPECT_EQ(actor_->published().SerializeAsString(), before.SerializeAsString());
  EXPECT_TRUE(Ready()) << "heads report again";
  for (int beat = 0; beat < 10; ++beat) {
    Advance(absl::Milliseconds(500));
    for (size_t i = 0; i < 3; ++i) Call(Heartbeat(servers_[i]));
  }
  EXPECT_EQ(actor_->published().nodes(3).state(), proto::Node::DEAD);
  while (Ready()) continue;
  EXPECT_EQ(Held(2) + Held(3) + Held(4), 8);
}

TEST_F(SchedulerChainsTest, WhatIsReportedWhileARecordIsWrittenComesTogetherInTheNext) {
  AddServer();
  while (Ready()) continue;
  Receive(Drain("server-0"));
  SyncDisk();
  Message work = From({});
  work.envelope.mutable_scale_request()->set_servers(7);
  Receive(work);
  ASSERT_EQ(pending_appends_.size(), 1);
  const uint64_t epoch = actor_->published().epoch();
  sent_.clear();
  int reports = 0;
  for (const proto::Shard& shard : actor_->published().tables(0).shards()) {
    if (!shard.chain().rbegin()->joining()) continue;
    Message message = From(servers_[shard.chain(0).node() - 2]);
    proto::ReplicaReport& report =
        *message.envelope.mutable_replica_report_request()->add_reports();
    report.set_table(1);
    report.set_shard(shard.index());
    report.set_generation(shard.generation());
    report.set_chain_epoch(shard.chain_epoch());
    report.set_node(shard.chain().rbegin()->node());
    report.set_kind(proto::ReplicaReport::READY);
    Receive(message);
    ++reports;
  }
  ASSERT_GE(reports, 2);
  EXPECT_GT(actor_->NextWake(), now_) << "it does not spin meanwhile";
  AnswerDisk();
  EXPECT_EQ(actor_->published().epoch(), epoch + 1);
  EXPECT_EQ(sent_.size(), 1u) << "no report is answered yet";
  ASSERT_EQ(pending_appends_.size(), 1);
  AnswerDisk();
  EXPECT_TRUE(pending_appends_.empty());
  EXPECT_EQ(sent_.size(), 1u + static_cast<size_t>(reports));
  EXPECT_EQ(Held(2), 0);
}

TEST_F(SchedulerChainsTest, LostShardsMoveOnWhenNobodyComesInPlace) {
  for (int beat = 0; beat < 6; ++beat) {
    Advance(absl::Milliseconds(500));
    Call(Heartbeat(servers_[1]));
  }
  EXPECT_EQ(Held(3), 4);
  // The last one dies, too; then a server of another rank joins.
  Advance(absl::Seconds(3));
  EXPECT_EQ(actor_->published().nodes(1).state(), proto::Node::DEAD);
  Message request = RegisterRequest(14, proto::SERVER);
  request.envelope.mutable_register_request()->set_rank(5);
  const Message reply = Call(request);
  const Sender late{.node = reply.envelope.register_reply().node(), .incarnation = 14};
  EXPECT_EQ(Held(late.node), 0);
  for (int beat = 0; beat < 65; ++beat) {
    Advance(absl::Milliseconds(500));
    Call(Heartbeat(late));
  }
  EXPECT_EQ(Held(late.node), 4);
  EXPECT_GT(actor_->published().tables(0).shards(0).generation(), 3u);
}

TEST_F(SchedulerChainsTest, ThePlantedBugAnswersBeforeTheRecordIsDurable) {
  PlantBug(PlantedBug::kAnswerBeforeLogged);
  AddServer();
  sent_.clear();
  Receive(Drain("server-0"));
  EXPECT_EQ(sent_.size(), 1u);
}

TEST_F(SchedulerChainsTest, ThePlantedBugForgetsTheNewestRecord) {
  const uint64_t epoch = actor_->published().epoch();
  PlantBug(PlantedBug::kEpochGoesBack);
  Start(RecoverLog({reinterpret_cast<const uint8_t*>(log_.data()), log_.size()})->newest);
  EXPECT_LT(actor_->published().epoch(), epoch);
}

}  // namespace
}  // namespace covey::scheduler

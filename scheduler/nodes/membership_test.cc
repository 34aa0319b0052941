// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/membership.h"

#include <optional>
#include <string>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const absl::Time kStart = absl::UnixEpoch() + absl::Hours(1);

class MembershipTest : public ::testing::Test {
 protected:
  MembershipTest() { membership_.Start(kStart); }

  static proto::RegisterRequest Request(proto::Role role, int rank = -1,
                                        const std::string& labels = "") {
    proto::RegisterRequest request;
    request.set_job_name("job");
    request.set_role(role);
    request.set_rank(rank);
    request.set_labels(labels);
    request.set_process_id(100);
    request.set_host("h");
    if (role == proto::SERVER) {
      request.add_endpoints("");
      request.add_endpoints("tcp://127.0.0.1:1");
    }
    return request;
  }
  absl::StatusOr<Membership::Registration> Register(uint64_t incarnation, proto::Role role,
                                                    int rank = -1) {
    return membership_.Register(kStart, Request(role, rank), Incarnation(incarnation));
  }
  NodeId MustRegister(uint64_t incarnation, proto::Role role, int rank = -1) {
    const auto registration = Register(incarnation, role, rank);
    EXPECT_TRUE(registration.ok()) << registration.status();
    membership_.OnRegistrationAnswered(kStart, registration->node);
    return registration->node;
  }
  // One server and two groups of one worker: nodes 2, 3, 4.
  void RegisterAll() {
    MustRegister(11, proto::SERVER);
    MustRegister(12, proto::WORKER);
    MustRegister(13, proto::WORKER);
  }
  const proto::ClusterView& view() const { return state_.view(); }

  const MembershipOptions options_{.own_host = "h"};
  TestState state_{{.name = "job", .servers = 1, .groups = 2, .workers_per_group = 1}};
  AwayWorkers away_{state_};
  Groups groups_{{}, state_, away_};
  Membership membership_{options_, state_, groups_};
};

TEST_F(MembershipTest, NodesNeverFillTheMessageWithAView) {
  proto::RegisterRequest request = Request(proto::CLIENT, -1);
  while (request.endpoints_size() < static_cast<int>(kEndpointsPerNodeMax)) {
    request.add_endpoints(std::string(kEndpointBytesMax, 'e'));
  }
  absl::Status status;
  for (uint64_t incarnation = 100; status.ok() && incarnation < 500; ++incarnation) {
    status = membership_.Register(kStart, request, Incarnation(incarnation)).status();
  }
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_LT(view().ByteSizeLong(), kControlEnvelopeBytesMax / 2 + 1000);
  EXPECT_GT(view().ByteSizeLong(), kControlEnvelopeBytesMax / 5 * 2);
  // Nodes that are forgotten make room again.
  const int all = view().nodes_size();
  for (int i = 0; i < all; ++i) membership_.Leave(kStart, NodeId(view().nodes(i).id()), "done");
  for (uint64_t incarnation = 1000; incarnation < 1050; ++incarnation) {
    status = membership_.Register(kStart, request, Incarnation(incarnation)).status();
    ASSERT_TRUE(status.ok()) << incarnation << ": " << status;
  }
  // The largest job of ordinary nodes has room.
  EXPECT_LT(Request(proto::SERVER, 0).ByteSizeLong() * kNodesMax, kControlEnvelopeBytesMax / 2);
}

TEST_F(MembershipTest, GroupsFormWhenEveryoneIsHere) {
  EXPECT_EQ(view().waiting_for(), "server-0, worker-0, worker-1");
  MustRegister(11, proto::WORKER);
  MustRegister(12, proto::SERVER);
  EXPECT_EQ(view().waiting_for(), "worker-1");
  EXPECT_TRUE(view().groups().empty());
  MustRegister(13, proto::WORKER);
  EXPECT_EQ(view().waiting_for(), "");
  ASSERT_EQ(view().groups_size(), 2);
  EXPECT_EQ(view().groups(0).id(), 1);
  EXPECT_EQ(view().groups(0).generation(), 1);
  EXPECT_EQ(view().groups(0).state(), proto::Group::ACTIVE);
  EXPECT_THAT(view().groups(0).members(), ElementsAre(2));
  EXPECT_THAT(view().groups(1).members(), ElementsAre(4));
  EXPECT_EQ(view().epoch(), 3);
}

TEST_F(MembershipTest, RepeatedRegistrationChangesNothing) {
  const NodeId node = MustRegister(11, proto::WORKER);
  const auto again = Register(11, proto::WORKER);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->node, node);
  EXPECT_FALSE(again->is_new);
  EXPECT_EQ(state_.TakeDecisions().size(), 1u) << "registered once";
  EXPECT_EQ(view().epoch(), 1);
}

TEST_F(MembershipTest, RefusesMalformedRequests) {
  const auto refused = [&](const proto::RegisterRequest& request, uint64_t incarnation = 9) {
    return membership_.Register(kStart, request, Incarnation(incarnation)).status();
  };
  auto other_job = Request(proto::WORKER);
  other_job.set_job_name("other");
  EXPECT_THAT(std::string(refused(other_job).message()), HasSubstr("runs job 'job', not 'other'"));
  EXPECT_TRUE(absl::IsInvalidArgument(refused(Request(proto::SCHEDULER))));
  EXPECT_TRUE(absl::IsInvalidArgument(refused(Request(proto::WORKER, -2))));
  EXPECT_TRUE(absl::IsInvalidArgument(refused(Request(proto::WORKER), 0)));
  auto bare_server = Request(proto::SERVER);
  bare_server.clear_endpoints();
  EXPECT_TRUE(absl::IsInvalidArgument(refused(bare_server)));
  EXPECT_TRUE(absl::IsInvalidArgument(refused(Request(proto::WORKER, -1, std::string(1000, 'x')))));
  EXPECT_EQ(view().epoch(), 0);
}

TEST_F(MembershipTest, DuplicateRankNamesTheHolder) {
  MustRegister(11, proto::WORKER, 1);
  const absl::Status status = Register(12, proto::WORKER, 1).status();
  EXPECT_TRUE(absl::IsAlreadyExists(status));
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("held by worker-1 (node 2, pid 100 on host h)"));
}

TEST_F(MembershipTest, WithoutElasticityExtraWorkersFindTheJobFull) {
  state_.job().elastic = false;
  RegisterAll();
  for (int rank : {-1, 0, 7}) {
    const absl::Status status = Register(99, proto::WORKER, rank).status();
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr("job is full"));
  }
  EXPECT_TRUE(Register(99, proto::CLIENT).ok());
}

TEST_F(MembershipTest, LateWorkersGetTheLowestFreeRank) {
  RegisterAll();
  EXPECT_TRUE(absl::IsAlreadyExists(Register(99, proto::WORKER, 0).status()));
  EXPECT_EQ(Register(21, proto::WORKER)->rank, 2);
  membership_.Leave(kStart, NodeId(3), "");
  const auto registration = Register(22, proto::WORKER);
  EXPECT_EQ(registration->rank, 0);
  EXPECT_EQ(registration->replaces, NodeId(3));
  EXPECT_EQ(Register(23, proto::WORKER, 70)->rank, 70);
}

TEST_F(MembershipTest, ServersMayBeMoreThanWereExpected) {
  RegisterAll();
  EXPECT_EQ(Register(21, proto::SERVER)->rank, 1);
  EXPECT_EQ(Register(22, proto::SERVER, 7)->rank, 7);
  state_.job().elastic = false;
  EXPECT_TRUE(absl::IsFailedPrecondition(Register(23, proto::SERVER).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(Register(24, proto::SERVER, 2).status()));
}

TEST_F(MembershipTest, TablesWaitForServersOnlyTheFirstTime) {
  state_.job().servers = 2;
  const NodeId first = MustRegister(11, proto::SERVER);
  EXPECT_EQ(membership_.CheckServers().message(), "waiting for server-1");
  const NodeId second = MustRegister(12, proto::SERVER);
  membership_.Leave(kStart, first, "");
  EXPECT_TRUE(membership_.CheckServers().ok());
  state_.mutable_view()->mutable_nodes(1)->set_draining(true);
  EXPECT_EQ(membership_.CheckServers().message(), "waiting for server-0");
  membership_.Leave(kStart, second, "");
  EXPECT_FALSE(view().nodes(1).draining());
  EXPECT_EQ(membership_.CheckServers().message(), "waiting for server-0, server-1");
}

class ProbeTest : public MembershipTest {
 protected:
  ProbeTest() { RegisterAll(); }

  std::optional<proto::ProbeRequest> Request(const std::optional<Message>& probe) {
    if (!probe) return std::nullopt;
    EXPECT_EQ(probe->to(), (Address{kSchedulerNode, kProbeLoop}));
    probe_ = *probe;
    return probe->envelope.probe_request();
  }
  std::optional<proto::ProbeRequest> Ask(int rank, absl::Duration silence = absl::Seconds(2)) {
    proto::RegisterRequest request;
    request.set_role(proto::SERVER);
    request.set_rank(rank);
    return Request(membership_.OnRankTaken(kStart + silence, request));
  }
  std::optional<proto::ProbeRequest> Lose(uint64_t node, uint64_t incarnation) {
    proto::ConnectionLost lost;
    lost.set_node(node);
    lost.set_incarnation(incarnation);
    return Request(membership_.OnConnectionLost(lost));
  }
  // To the newest probe.
  std::optional<Membership::Death> Reply(proto::ProbeReply::Result result, uint64_t node = 2,
                                         uint64_t incarnation = 11) {
    Message reply = MakeReply(probe_);
    proto::ProbeReply& body = *reply.envelope.mutable_probe_reply();
    body.set_node(node);
    body.set_incarnation(incarnation);
    body.set_result(result);
    return membership_.OnProbeReply(kStart + absl::Milliseconds(10), reply);
  }

  Message probe_;  // the newest one
};

TEST_F(ProbeTest, ARefusedReconnectIsDeath) {
  const auto probe = Lose(2, 11);
  ASSERT_TRUE(probe.has_value());
  EXPECT_EQ(probe->node(), 2u);
  EXPECT_EQ(probe->incarnation(), 11u);
  EXPECT_EQ(probe->endpoint(), "tcp://127.0.0.1:1") << "the first that listens";
  EXPECT_EQ(Lose(2, 11), std::nullopt) << "is being probed";
  const auto death = Reply(proto::ProbeReply::REFUSED);
  ASSERT_TRUE(death.has_value());
  EXPECT_EQ(death->node, NodeId(2));
  EXPECT_THAT(state_.News(), HasSubstr("dead: its host refuses a connection"));
  EXPECT_EQ(death->lease_end, absl::InfinitePast()) << "its process is gone";
  EXPECT_EQ(view().nodes(0).state(), proto::Node::DEAD);
  EXPECT_EQ(view().epoch(), 4u);
  EXPECT_EQ(Reply(proto::ProbeReply::REFUSED), std::nullopt);
}

// A proxy or a firewall may refuse although the process lives, and serves under its lease.
TEST_F(MembershipTest, OnlyItsOwnMachineTellsTheSchedulerThatAProcessIsGone) {
  struct Case {
    std::string host;
    std::string endpoint;
    bool is_gone;
  };
  uint64_t incarnation = 20;
  for (const Case& of :
       {Case{"h", "tcp://127.0.0.1:1", true}, Case{"h", "tcp://[::1]:1", true},
        Case{"h", "ipc:///tmp/covey-server/1", true}, Case{"h", "tcp://10.0.0.7:1", false},
        Case{"h", "tcp://server-0:1", false}, Case{"other", "tcp://127.0.0.1:1", false},
        Case{"other", "ipc:///tmp/covey-server/1", false}}) {
    proto::RegisterRequest request = Request(proto::SERVER);
    request.set_host(of.host);
    request.set_endpoints(1, of.endpoint);
    const auto server = membership_.Register(kStart, request, Incarnation(++incarnation));
    ASSERT_TRUE(server.ok()) << server.status();
    membership_.OnRegistrationAnswered(kStart, server->node);
    proto::ConnectionLost lost;
    lost.set_node(server->node.value());
    lost.set_incarnation(incarnation);
    const std::optional<Message> probe = membership_.OnConnectionLost(lost);
    ASSERT_TRUE(probe.has_value());
    Message reply = MakeReply(*probe);
    proto::ProbeReply& body = *reply.envelope.mutable_probe_reply();
    body.set_node(server->node.value());
    body.set_incarnation(incarnation);
    body.set_result(proto::ProbeReply::REFUSED);
    const auto death = membership_.OnProbeReply(kStart, reply);
    ASSERT_TRUE(death.has_value()) << of.endpoint;
    EXPECT_EQ(death->lease_end, of.is_gone ? absl::InfinitePast() : membership_.LeaseEnd(kStart))
        << of.host << " " << of.endpoint;
  }
}

TEST_F(ProbeTest, TheHolderOfARankThatIsAskedForIsProbed) {
  membership_.OnHeartbeat(kStart, NodeId(2), {});
  EXPECT_EQ(Ask(0, absl::Seconds(1)), std::nullopt) << "it was heard";
  EXPECT_EQ(Ask(7), std::nullopt) << "nobody holds it";
  EXPECT_EQ(Ask(-1), std::nullopt) << "any rank would do";
  const auto probe = Ask(0);
  ASSERT_TRUE(probe.has_value());
  EXPECT_EQ(probe->node(), 2u);
  EXPECT_EQ(probe->incarnation(), 11u);
  EXPECT_EQ(Ask(0), std::nullopt) << "is being probed";
  EXPECT_EQ(Reply(proto::ProbeReply::CONNECTED), std::nullopt);
  ASSERT_TRUE(Ask(0).has_value()) << "asked again";
  EXPECT_EQ(Reply(proto::ProbeReply::REFUSED)->node, NodeId(2));
  EXPECT_EQ(Ask(0), std::nullopt) << "is dead";
}

TEST_F(ProbeTest, AnythingElseProvesNothing) {
  for (const auto result : {proto::ProbeReply::CONNECTED, proto::ProbeReply::SILENT,
                            proto::ProbeReply::RESULT_UNSPECIFIED}) {
    ASSERT_TRUE(Lose(2, 11).has_value());
    EXPECT_EQ(Reply(result), std::nullopt);
    EXPECT_EQ(view().nodes(0).state(), proto::Node::ALIVE);
  }
}

TEST_F(ProbeTest, WhoWasHeardSinceLives) {
  ASSERT_TRUE(Lose(2, 11).has_value());
  membership_.OnHeartbeat(kStart, NodeId(2), {});
  EXPECT_EQ(Reply(proto::ProbeReply::REFUSED), std::nullopt);
  // An unexpected reply does not count either.
  EXPECT_EQ(Reply(proto::ProbeReply::REFUSED), std::nullopt);
}

// The refusals that it tells of may both be from before the node was heard.
TEST_F(ProbeTest, AReplyToAnEarlierProbeProvesNothing) {
  ASSERT_TRUE(Lose(2, 11).has_value());
  const Message first = probe_;
  membership_.OnHeartbeat(kStart, NodeId(2), {});
  ASSERT_TRUE(Lose(2, 11).has_value());
  const Message second = std::exchange(probe_, first);
  EXPECT_EQ(Reply(proto::ProbeReply::REFUSED), std::nullopt);
  EXPECT_EQ(Lose(2, 11), std::nullopt) << "is being probed";
  probe_ = second;
  EXPECT_EQ(Reply(proto::ProbeReply::REFUSED)->node, NodeId(2));
}

TEST_F(ProbeTest, OnlyThePresentLifeOfANodeIsProbed) {
  EXPECT_EQ(Lose(2, 77), std::nullopt);
  EXPECT_EQ(Lose(99, 11), std::nullopt);
  EXPECT_EQ(Lose(3, 12), std::nullopt) << "listens nowhere";
  ASSERT_TRUE(Lose(2, 11).has_value());
  EXPECT_EQ(Reply(proto::ProbeReply::REFUSED, 2, 77), std::nullopt);
  membership_.Leave(kStart, NodeId(2), "");
  EXPECT_EQ(Lose(2, 11), std::nullopt);
  EXPECT_EQ(Reply(proto::ProbeReply::REFUSED), std::nullopt);
}

TEST_F(MembershipTest, AMembersDeathSaysWhatBecomesOfItsGroup) {
  state_.job().groups = 1;
  state_.job().workers_per_group = 2;
  RegisterAll();
  const absl::Time beat = kStart + absl::Seconds(1);
  membership_.OnHeartbeat(beat, NodeId(2), {});
  membership_.OnHeartbeat(beat, NodeId(3), {});
  const auto deaths = membership_.DeclareDead(kStart + absl::Seconds(2.5));
  ASSERT_EQ(deaths.size(), 1u);
  const std::string news = state_.News();
  EXPECT_THAT(news, HasSubstr("worker-1 (node 4, pid 100 on host h) dead: silent"));
  EXPECT_THAT(news,
              HasSubstr("; group 1 goes on at once without worker-1 as generation 2 of 1 member"));
}

TEST_F(MembershipTest, SilenceIsDeathAndBreaksTheGroup) {
  RegisterAll();
  const absl::Time beat = kStart + absl::Seconds(1);
  membership_.OnHeartbeat(beat, NodeId(2), {});
  membership_.OnHeartbeat(beat, NodeId(4), {});
  EXPECT_TRUE(membership_.DeclareDead(kStart + absl::Seconds(2)).empty());
  EXPECT_EQ(membership_.NextDeath(), kStart + absl::Seconds(2.5));
  const auto deaths = membership_.DeclareDead(kStart + absl::Seconds(2.5));
  ASSERT_EQ(deaths.size(), 1);
  EXPECT_EQ(deaths[0].node, NodeId(3));
  EXPECT_EQ(deaths[0].lease_end, membership_.LeaseEnd(kStart)) << "as when it was last answered";
  EXPECT_THAT(state_.News(), HasSubstr("worker-0 (node 3, pid 100 on host h) dead: silent"));
  EXPECT_EQ(view().nodes(1).state(), proto::Node::DEAD);
  EXPECT_EQ(view().groups(0).state(), proto::Group::BROKEN);
  EXPECT_THAT(view().groups(0).reason(), HasSubstr("worker-0 (node 3, pid 100 on host h)"));
  EXPECT_THAT(view().groups(0).reason(), HasSubstr("silent for 2.5 s"));
  EXPECT_EQ(view().groups(1).state(), proto::Group::ACTIVE);
  EXPECT_EQ(view().epoch(), 4);
}

// The disk may take longer than the silence that is allowed.
TEST_F(MembershipTest, WhoWaitsForTheAnswerToItsRegistrationIsNotSilent) {
  const NodeId node = Register(11, proto::SERVER)->node;
  const absl::Time answered = kStart + absl::Seconds(8);
  EXPECT_TRUE(membership_.DeclareDead(answered).empty());
  membership_.OnRegistrationAnswered(answered, node);
  EXPECT_EQ(membership_.NextDeath(), answered + absl::Seconds(2.5));
  EXPECT_EQ(membership_.DeclareDead(answered + absl::Seconds(2.5)).size(), 1u);
}

TEST_F(MembershipTest, PausesOfTheObserverAreExcused) {
  MustRegister(11, proto::WORKER);
  membership_.DiscountPause(absl::Seconds(60));
  EXPECT_TRUE(membership_.DeclareDead(kStart + absl::Seconds(62)).empty());
  EXPECT_EQ(membership_.DeclareDead(kStart + absl::Seconds(63)).size(), 1);
}

TEST_F(MembershipTest, GroupIsDoneWhenEveryMemberHasLeft) {
  RegisterAll();
  membership_.Leave(kStart, NodeId(3), "done");
  EXPECT_THAT(state_.News(), HasSubstr("left: done"));
  EXPECT_EQ(view().groups(0).state(), proto::Group::DONE);
  EXPECT_EQ(view().groups(1).state(), proto::Group::ACTIVE);
  EXPECT_TRUE(membership_.HasLeft(NodeId(3), Incarnation(12)));
  EXPECT_EQ(membership_.NextDeath(), kStart + absl::Seconds(2.5)) << "of the others";
}

TEST_F(MembershipTest, WhoSaysGoodbyeKnowsWhatItHolds) {
  RegisterAll();
  proto::Table& table = *state_.mutable_view()->add_tables();
  table.mutable_spec()->set_name("weights");
  proto::Shard& shard = *table.add_shards();
  shard.set_chain_epoch(7);
  shard.add_chain()->set_node(2);
  const absl::Status early = membership_.CheckLeave(NodeId(2), Epoch(6));
  EXPECT_TRUE(absl::IsFailedPrecondition(early)) << early;
  EXPECT_THAT(std::string(early.message()), HasSubstr("table weights shard 0"));
  EXPECT_TRUE(membership_.CheckLeave(NodeId(2), Epoch(7)).ok());
  EXPECT_TRUE(membership_.CheckLeave(NodeId(3), Epoch(6)).ok());
}

TEST_F(MembershipTest, FencesTheDeadTheGoneAndTheUnknown) {
  RegisterAll();
  membership_.Leave(kStart, NodeId(4), "done");
  membership_.DeclareDead(kStart + absl::Seconds(10));
  const auto refusal = [&](uint64_t node, uint64_t incarnation) {
    const absl::Status status = membership_.CheckSender(NodeId(node), Incarnation(incarnation));
    EXPECT_TRUE(absl::IsAborted(status)) << status;
    return std::string(status.message());
  };
  EXPECT_THAT(refusal(2, 11), HasSubstr("declared dead at epoch 5"));
  EXPECT_THAT(refusal(4, 13), HasSubstr("left at epoch 4: done"));
  EXPECT_THAT(refusal(2, 77), HasSubstr("another incarnation"));
  EXPECT_THAT(refusal(50, 11), HasSubstr("not in job"));
  EXPECT_TRUE(absl::IsAborted(Register(11, proto::SERVER).status()));
}

TEST_F(MembershipTest, AnewServerTakesTheRankOfADeadOne) {
  RegisterAll();
  membership_.DeclareDead(kStart + absl::Seconds(10));
  EXPECT_TRUE(absl::IsUnavailable(membership_.CheckServers()));
  const auto heir = Register(21, proto::SERVER);
  ASSERT_TRUE(heir.ok());
  EXPECT_EQ(heir->rank, 0);
  EXPECT_EQ(heir->replaces, NodeId(2));
  EXPECT_EQ(heir->node, NodeId(5));
  EXPECT_TRUE(membership_.CheckServers().ok());
  EXPECT_THAT(std::string(membership_.CheckSender(NodeId(2), Incarnation(11)).message()),
              HasSubstr("replaced by server-0 (node 5"));
}

TEST_F(MembershipTest, BeforeGroupsFormAWorkerMayComeBack) {
  MustRegister(11, proto::WORKER, 0);
  membership_.DeclareDead(kStart + absl::Seconds(10));
  MustRegister(12, proto::WORKER, 0);
  MustRegister(13, proto::WORKER, 1);
  MustRegister(14, proto::SERVER);
  ASSERT_EQ(view().groups_size(), 2);
  EXPECT_THAT(view().groups(0).members(), ElementsAre(3));
}

TEST_F(MembershipTest, RecoveredNodesHaveGraceAndReviveByHeartbeat) {
  RegisterAll();
  Groups groups({}, state_, away_);
  Membership restarted(options_, state_, groups);
  const absl::Time heard_by = restarted.Start(kStart);
  EXPECT_EQ(heard_by, kStart + options_.restart_grace + options_.silence_min);
  EXPECT_EQ(restarted.NextDeath(), heard_by);
  EXPECT_TRUE(restarted.CheckSender(NodeId(3), Incarnation(12)).ok());
  restarted.OnHeartbeat(kStart + absl::Seconds(1), NodeId(3), {});
  EXPECT_EQ(restarted.NextDeath(), kStart + absl::Seconds(3.5));
}

TEST_F(MembershipTest, ForgetsTheOldestDepartedClients) {
  RegisterAll();
  for (uint64_t i = 0; i < 100; ++i)
    membership_.Leave(kStart, MustRegister(1000 + i, proto::CLIENT), "");
  EXPECT_LE(view().nodes_size(), 3 + 65);
  EXPECT_EQ(view().nodes(0).name(), "server-0");
  EXPECT_EQ(view().nodes(3).name(), "client-0");
  EXPECT_GT(view().nodes(3).id(), 5);
}

// A service whose servers are restarted for months.
TEST_F(MembershipTest, ForgetsTheOldestDepartedServersAndWorkers) {
  RegisterAll();
  NodeId server(2);
  for (uint64_t i = 0; i < 1000; ++i) {
    membership_.Leave(kStart, server, "");
    server = MustRegister(1000 + i, proto::SERVER, 0);
  }
  EXPECT_LE(view().nodes_size(), 70);
  // Those of the groups stay.
  EXPECT_EQ(view().nodes(0).name(), "worker-0");
  EXPECT_EQ(view().nodes(1).name(), "worker-1");
}

TEST_F(MembershipTest, KnowsTheLoadOfAServerFromItsRegistrationOn) {
  proto::RegisterRequest request = Request(proto::SERVER);
  request.mutable_load()->set_table_bytes_max(1000);
  const NodeId server = membership_.Register(kStart, request, Incarnation(11))->node;
  EXPECT_EQ(membership_.LoadOf(server)->table_bytes_max(), 1000);
  membership_.OnRegistrationAnswered(kStart, server);
  EXPECT_EQ(membership_.LoadOf(server)->table_bytes_max(), 1000);
  proto::HeartbeatRequest beat;
  beat.mutable_load()->set_table_bytes_max(2000);
  membership_.OnHeartbeat(kStart, server, beat);
  EXPECT_EQ(membership_.LoadOf(server)->table_bytes_max(), 2000);
  membership_.Leave(kStart, server, "");
  EXPECT_EQ(membership_.LoadOf(server), nullptr);
}

TEST_F(MembershipTest, StatusHasOneEntryPerNode) {
  RegisterAll();
  proto::HeartbeatRequest beat;
  beat.mutable_progress()->set_step(7);
  membership_.OnHeartbeat(kStart + absl::Seconds(1), NodeId(3), beat);
  membership_.Leave(kStart, NodeId(4), "");
  proto::StatusReply reply;
  membership_.FillStatus(kStart + absl::Seconds(1.5), reply);
  ASSERT_EQ(reply.nodes_size(), 3);
  EXPECT_EQ(reply.nodes(0).silent_ms(), 1500);
  EXPECT_EQ(reply.nodes(1).silent_ms(), 500);
  EXPECT_EQ(reply.nodes(1).progress().step(), 7);
  EXPECT_FALSE(reply.nodes(2).has_progress());
}

}  // namespace
}  // namespace covey::scheduler

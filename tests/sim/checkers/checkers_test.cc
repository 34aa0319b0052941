// SPDX-License-Identifier: Apache-2.0

// Each checker is silent about a valid exchange and reports an invalid one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "common/cluster/limits.h"
#include "tests/sim/checkers/answered_pushes.h"
#include "tests/sim/checkers/applied_once.h"
#include "tests/sim/checkers/asked_history.h"
#include "tests/sim/checkers/chain_fence.h"
#include "tests/sim/checkers/death_evidence.h"
#include "tests/sim/checkers/departed_nodes.h"
#include "tests/sim/checkers/equal_replicas.h"
#include "tests/sim/checkers/equal_views.h"
#include "tests/sim/checkers/fenced_producers.h"
#include "tests/sim/checkers/kept_content.h"
#include "tests/sim/checkers/one_owner.h"
#include "tests/sim/checkers/returned_frames.h"
#include "tests/sim/checkers/row_budget.h"
#include "tests/sim/checkers/shard_clocks.h"
#include "tests/sim/checkers/view_history.h"
#include "tests/sim/checkers/whole_cluster.h"

namespace covey::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <typename Checker>
std::vector<std::string> Watch(const std::vector<Message>& messages) {
  Violations violations;
  Checker checker(violations);
  for (const Message& message : messages) {
    // Views for loops other than the first, and replies, are received.
    if (message.to().loop == 0) checker.OnSend(absl::UnixEpoch(), message);
    checker.OnReceive(absl::UnixEpoch(), "receiver", message);
  }
  return violations.found();
}

Message From(uint64_t node, uint64_t to = 9) {
  Message message;
  message.envelope.mutable_header()->set_node(node);
  message.set_to({NodeId(to), 0});
  return message;
}

proto::ClusterView& AddView(uint64_t epoch, Message& message) {
  proto::ClusterView& view = *message.envelope.mutable_watch_view_reply()->mutable_view();
  view.set_epoch(epoch);
  return view;
}

Message View(uint64_t epoch) {
  Message message = From(1);
  AddView(epoch, message);
  return message;
}

Message ViewWithNode(uint64_t epoch, proto::Node::State state, uint64_t incarnation = 5) {
  Message message = From(1);
  proto::Node& node = *AddView(epoch, message).add_nodes();
  node.set_id(9);
  node.set_incarnation(incarnation);
  node.set_state(state);
  return message;
}

struct Chained {
  std::vector<uint64_t> joined;
  std::vector<uint64_t> joining;
  std::vector<uint64_t> dead;
  std::vector<uint64_t> left;       // once they were drained
  std::vector<uint64_t> undrained;  // and have left
  // 0 = the view's epoch.
  uint64_t chain_epoch = 0;
};

// A view of servers 2, 3 and 4, and one shard.
Message ViewWithChain(uint64_t epoch, uint64_t generation, const Chained& chained) {
  Message message = From(1);
  proto::ClusterView& view = AddView(epoch, message);
  for (uint64_t id = 2; id <= 4; ++id) {
    proto::Node& node = *view.add_nodes();
    node.set_id(id);
    node.set_name(absl::StrCat("server-", id));
    node.set_role(proto::SERVER);
    const bool is_drained = absl::c_linear_search(chained.left, id);
    const bool has_left = is_drained || absl::c_linear_search(chained.undrained, id);
    node.set_state(absl::c_linear_search(chained.dead, id) ? proto::Node::DEAD
                   : has_left                              ? proto::Node::LEFT
                                                           : proto::Node::ALIVE);
    if (has_left) {
      node.set_departure(is_drained ? "left at epoch 9: signal 15, drained"
                                    : "left at epoch 9: signal 15");
    }
  }
  proto::Table& table = *view.add_tables();
  table.set_id(1);
  proto::Shard& shard = *table.add_shards();
  shard.set_generation(generation);
  shard.set_chain_epoch(chained.chain_epoch == 0 ? epoch : chained.chain_epoch);
  for (const uint64_t id : chained.joined) shard.add_chain()->set_node(id);
  for (const uint64_t id : chained.joining) {
    proto::Replica& replica = *shard.add_chain();
    replica.set_node(id);
    replica.set_joining(true);
  }
  return message;
}

// The same view, as the control loop of a server hands it to its data loop.
Message Believed(uint64_t server, const Message& view) {
  Message message = view;
  message.envelope.mutable_header()->set_node(server);
  message.set_to({NodeId(server), 1});
  return message;
}

// Server 2 reports that the replica on `node` is filled.
Message Ready(uint64_t generation, uint64_t node) {
  Message message = From(2);
  proto::ReplicaReport& report = *message.envelope.mutable_replica_report_request()->add_reports();
  report.set_table(1);
  report.set_generation(generation);
  report.set_node(node);
  report.set_kind(proto::ReplicaReport::READY);
  return message;
}

Message ViewWithShard(uint64_t epoch, uint64_t owner, uint64_t generation) {
  return ViewWithChain(epoch, generation, {.joined = {owner}});
}

struct Pushed {
  uint64_t owner = 2;
  uint64_t sequence = 1;
  uint64_t group_generation = 1;
  uint64_t applied = 1;
  bool duplicate = false;
  uint64_t version = 1;
  uint64_t clock = 1;
  uint64_t generation = 3;
  bool durable = true;
  uint64_t samples = 0;
  uint64_t to = 9;
  uint64_t request = 0;
};

Message Reply(const Pushed& pushed) {
  Message message = From(pushed.owner, pushed.to);
  message.envelope.mutable_header()->set_request_id(pushed.request);
  proto::PushReply& reply = *message.envelope.mutable_push_reply();
  reply.mutable_id()->set_table(1);
  reply.mutable_id()->set_producer(4);
  reply.mutable_id()->set_producer_kind(proto::PushId::GROUP);
  reply.mutable_id()->set_producer_incarnation(pushed.group_generation);
  reply.mutable_id()->set_sequence(pushed.sequence);
  reply.set_applied_version(pushed.applied);
  reply.set_duplicate(pushed.duplicate);
  reply.set_durable(pushed.durable);
  reply.mutable_state()->set_samples(pushed.samples);
  reply.mutable_state()->set_version(pushed.version);
  reply.mutable_state()->set_generation(pushed.generation);
  proto::GroupClock& clock = *reply.mutable_state()->add_clocks();
  clock.set_group(4);
  clock.set_step(pushed.clock);
  return message;
}

TEST(ViewHistoryTest, EpochsGrow) {
  EXPECT_THAT(Watch<ViewHistory>({View(1), View(1), View(3)}), IsEmpty());
  EXPECT_THAT(Watch<ViewHistory>({View(3), View(2)}), ElementsAre(HasSubstr("from 3 to 2")));
  EXPECT_THAT(Watch<ViewHistory>({View(1), ViewWithNode(1, proto::Node::ALIVE)}),
              ElementsAre(HasSubstr("two views of epoch 1")));
}

TEST(DepartedNodesTest, NobodyReturns) {
  Message beat = From(1);
  beat.envelope.mutable_heartbeat_reply();
  const Message alive = ViewWithNode(1, proto::Node::ALIVE);
  const Message dead = ViewWithNode(2, proto::Node::DEAD);
  EXPECT_THAT(Watch<DepartedNodes>({alive, beat, dead}), IsEmpty());
  EXPECT_THAT(Watch<DepartedNodes>({alive, dead, beat}), ElementsAre(HasSubstr("heartbeat")));
  EXPECT_THAT(Watch<DepartedNodes>({dead, ViewWithNode(3, proto::Node::ALIVE)}),
              ElementsAre(HasSubstr("returned")));
  EXPECT_THAT(Watch<DepartedNodes>({alive, ViewWithNode(2, proto::Node::ALIVE, 6)}),
              ElementsAre(HasSubstr("incarnation")));
}

TEST(DeathEvidenceTest, ARefusalCountsAfterASilence) {
  const auto watch = [](absl::Duration silence) {
    Violations violations;
    DeathEvidence checker(violations);
    Message beat = From(9, /*to=*/1);
    beat.envelope.mutable_header()->set_incarnation(5);
    beat.envelope.mutable_heartbeat_request();
    checker.OnReceive(absl::UnixEpoch(), "scheduler", beat);
    Message refused = From(1, /*to=*/1);
    proto::ProbeReply& reply = *refused.envelope.mutable_probe_reply();
    reply.set_node(9);
    reply.set_incarnation(5);
    reply.set_result(proto::ProbeReply::REFUSED);
    checker.OnReceive(absl::UnixEpoch() + silence, "scheduler", refused);
    Message view = ViewWithNode(2, proto::Node::DEAD);
    proto::Node& node = *view.envelope.mutable_watch_view_reply()->mutable_view()->mutable_nodes(0);
    node.set_departure("declared dead at epoch 2: its host refuses a connection");
    checker.OnSend(absl::UnixEpoch() + silence, view);
    checker.OnSend(absl::UnixEpoch() + silence, view);
    return violations.found();
  };
  EXPECT_THAT(watch(absl::Milliseconds(500)), IsEmpty());
  EXPECT_THAT(watch(absl::Milliseconds(499)), ElementsAre(HasSubstr("refuses a connection")));
}

TEST(OneOwnerTest, OneChainHasOneHead) {
  EXPECT_THAT(Watch<OneOwner>({ViewWithShard(3, 2, 3), Reply({}), ViewWithShard(4, 4, 4),
                               Reply({.owner = 4, .generation = 4}), Reply({})}),
              IsEmpty());
  EXPECT_THAT(Watch<OneOwner>({ViewWithShard(3, 2, 3), Reply({.owner = 5})}),
              ElementsAre(HasSubstr("does not own")));
  EXPECT_THAT(Watch<OneOwner>({ViewWithChain(3, 3, {.joined = {2}}),
                               ViewWithChain(4, 3, {.joined = {4}, .chain_epoch = 3})}),
              ElementsAre(HasSubstr("before it was 2.0")));
  EXPECT_THAT(Watch<OneOwner>({ViewWithShard(3, 2, 3), ViewWithShard(4, 2, 2)}),
              ElementsAre(HasSubstr("before, generation 3")));
  EXPECT_THAT(Watch<OneOwner>({ViewWithChain(3, 3, {.joined = {2, 2}})}),
              ElementsAre(HasSubstr("twice")));
}

// Loop 0 is not a data loop.
Message OnLoop1(Message view) {
  proto::Shard& shard =
      *view.envelope.mutable_watch_view_reply()->mutable_view()->mutable_tables(0)->mutable_shards(
          0);
  for (proto::Replica& replica : *shard.mutable_chain()) replica.set_loop(1);
  return view;
}

TEST(OneOwnerTest, AFormerHeadAcknowledgesNothing) {
  Message late = Reply({});
  late.envelope.set_from_loop(1);
  const Message both = OnLoop1(ViewWithChain(3, 3, {.joined = {2, 4}}));
  const Message one = OnLoop1(ViewWithChain(4, 3, {.joined = {4}, .dead = {2}}));
  EXPECT_THAT(Watch<OneOwner>({both, Believed(2, both), one, late}), IsEmpty());
  EXPECT_THAT(Watch<OneOwner>({both, one, Believed(2, one), late}),
              ElementsAre(HasSubstr("whose head is node 4")));
}

TEST(OneOwnerTest, WhoHeldAShardAloneStopsBeforeItBeginsAnew) {
  Message late = Reply({});
  late.envelope.set_from_loop(1);
  const Message alone = OnLoop1(ViewWithChain(3, 3, {.joined = {2}, .joining = {4}}));
  const Message both = OnLoop1(ViewWithChain(3, 3, {.joined = {2, 4}}));
  const Message anew = OnLoop1(ViewWithChain(4, 4, {.joined = {5}, .dead = {2, 4}}));
  EXPECT_THAT(Watch<OneOwner>({alone, Believed(2, alone), late, anew}), IsEmpty());
  EXPECT_THAT(Watch<OneOwner>({alone, Believed(2, alone), anew, late}),
              ElementsAre(HasSubstr("after generation 4 has begun")));
  EXPECT_THAT(Watch<OneOwner>({both, Believed(2, both), anew, late}), IsEmpty())
      << "no clock: the loss of all replicas at once is not promised";
}

TEST(KeptContentTest, ContentIsGivenUpOnlyWithItsLastServer) {
  EXPECT_THAT(Watch<KeptContent>({ViewWithChain(3, 3, {.joined = {2}}),
                                  ViewWithChain(4, 3, {.joined = {2}, .joining = {3}}), Ready(3, 3),
                                  ViewWithChain(5, 3, {.joined = {2, 3}}),
                                  ViewWithChain(6, 3, {.joined = {3}, .dead = {2}}),
                                  ViewWithChain(7, 7, {.joined = {4}, .dead = {2, 3}})}),
              IsEmpty());
  EXPECT_THAT(Watch<KeptContent>({ViewWithChain(3, 3, {.joined = {2, 3}}),
                                  ViewWithChain(4, 4, {.joined = {4}, .dead = {2}})}),
              ElementsAre(HasSubstr("node 3 had joined generation 3")));
  // Epoch 4 was not observed.
  EXPECT_THAT(Watch<KeptContent>({ViewWithChain(3, 3, {.joined = {2, 3}}),
                                  ViewWithChain(5, 5, {.joined = {4}, .dead = {2}})}),
              IsEmpty());
}

TEST(KeptContentTest, WhoIsBeingFilledHasNothingToKeep) {
  const Message filling = ViewWithChain(3, 3, {.joined = {2}, .joining = {3}});
  EXPECT_THAT(Watch<KeptContent>({filling, ViewWithChain(4, 4, {.joined = {4}, .dead = {2}})}),
              IsEmpty());
  EXPECT_THAT(Watch<KeptContent>({filling, ViewWithChain(4, 3, {.joined = {3}, .dead = {2}})}),
              ElementsAre(HasSubstr("nobody has said that it is")));
}

TEST(KeptContentTest, WhoLeavesHoldsNothing) {
  const Message both = ViewWithChain(3, 3, {.joined = {2, 3}});
  EXPECT_THAT(Watch<KeptContent>({both, ViewWithChain(4, 3, {.joined = {2}}),
                                  ViewWithChain(5, 3, {.joined = {2}, .left = {3}})}),
              IsEmpty());
  EXPECT_THAT(Watch<KeptContent>({both, ViewWithChain(4, 3, {.joined = {2}, .left = {3}})}),
              ElementsAre(HasSubstr("server-3 left while it held")));
}

TEST(KeptContentTest, WhoLeavesUndrainedTakesItsContentAlong) {
  const Message both = ViewWithChain(3, 3, {.joined = {2, 3}});
  EXPECT_THAT(Watch<KeptContent>({both, ViewWithChain(4, 3, {.joined = {2}, .undrained = {3}}),
                                  ViewWithChain(5, 5, {.joined = {4}, .undrained = {2, 3}})}),
              IsEmpty());
  EXPECT_THAT(Watch<KeptContent>({both, ViewWithChain(4, 4, {.joined = {4}, .undrained = {3}})}),
              ElementsAre(HasSubstr("node 2 had joined generation 3")));
}

TEST(KeptContentTest, ADroppedTableIsNobodysContent) {
  EXPECT_THAT(Watch<KeptContent>({ViewWithChain(3, 3, {.joined = {2, 3}}), View(4),
                                  ViewWithNode(5, proto::Node::LEFT)}),
              IsEmpty());
}

TEST(WholeClusterTest, SaysWhatIsMissing) {
  const auto why = [](const Chained& chained, bool draining = false) {
    proto::ClusterView view = ViewWithChain(3, 3, chained).envelope.watch_view_reply().view();
    view.mutable_nodes(0)->set_draining(draining);
    return WhyNotWhole(view);
  };
  EXPECT_EQ(why({.joined = {3, 4}}), "");
  EXPECT_EQ(why({.joined = {3}, .dead = {2, 4}}), "");
  EXPECT_THAT(why({.joined = {3}}), HasSubstr("1 replicas of 2"));
  EXPECT_THAT(why({.joined = {2, 3, 4}}), HasSubstr("3 replicas of 2"));
  EXPECT_THAT(why({.joined = {3}, .joining = {4}}), HasSubstr("being filled"));
  EXPECT_THAT(why({.joined = {3, 4}, .dead = {4}}), HasSubstr("not alive"));
  EXPECT_THAT(why({.joined = {3, 4}}, true), HasSubstr("server-2 has not gone yet"));
}

TEST(WholeClusterTest, WhoHoldsPushesMayStayAlone) {
  proto::ClusterView view =
      ViewWithChain(3, 3, {.joined = {2}, .joining = {3}}).envelope.watch_view_reply().view();
  view.mutable_nodes(0)->set_draining(true);
  EXPECT_THAT(WhyNotWhole(view), HasSubstr("has not gone yet"));
  proto::Contract& contract = *view.mutable_tables(0)->mutable_spec()->mutable_contract();
  contract.set_kind(proto::Contract::BUFFERED);
  contract.set_buffer(2);
  EXPECT_EQ(WhyNotWhole(view), "");
  contract.set_buffer(1);
  EXPECT_NE(WhyNotWhole(view), "");
}

TEST(ShardClocksTest, NothingGoesBack) {
  EXPECT_THAT(Watch<ShardClocks>({Reply({}), Reply({.version = 2, .clock = 2}),
                                  Reply({.version = 0, .clock = 0, .generation = 4})}),
              IsEmpty());
  EXPECT_THAT(Watch<ShardClocks>({Reply({.version = 2, .samples = 1}), Reply({.version = 1})}),
              IsEmpty());
  EXPECT_THAT(Watch<ShardClocks>({Reply({.version = 2}), Reply({.version = 1, .samples = 1})}),
              ElementsAre(HasSubstr("version 1 to 2")));
  EXPECT_THAT(Watch<ShardClocks>({Reply({.clock = 2}), Reply({.version = 2, .clock = 1})}),
              ElementsAre(HasSubstr("went back")));
}

// A replaced server may still answer an earlier request, but no later one.
TEST(ShardClocksTest, NothingGoesBackForAReader) {
  const auto request = [](uint64_t id) {
    Message message = From(9, 2);
    message.envelope.mutable_header()->set_request_id(id);
    proto::PullRequest& pull = *message.envelope.mutable_pull_request();
    pull.set_table(1);
    pull.set_shard_generation(3);
    return message;
  };
  const Message newer = Reply({.owner = 3, .version = 5, .samples = 5, .request = 1});
  const Message older = Reply({.owner = 2, .version = 4, .samples = 4, .request = 2});
  EXPECT_THAT(Watch<ShardClocks>({request(1), request(2), newer, older}), IsEmpty());
  EXPECT_THAT(Watch<ShardClocks>({request(1), newer, request(2), older}),
              ElementsAre(HasSubstr("receiver is told version 5 to 4")));
}

TEST(ShardClocksTest, TwoServersSayTheSameOfAVersion) {
  EXPECT_THAT(Watch<ShardClocks>(
                  {Reply({.owner = 2, .samples = 5, .to = 8}), Reply({.owner = 3, .samples = 4})}),
              ElementsAre(HasSubstr("different things")));
}

TEST(AppliedOnceTest, APushHasOneVersion) {
  EXPECT_THAT(Watch<AppliedOnce>({Reply({.applied = 0}), Reply({.applied = 7, .duplicate = true}),
                                  Reply({.applied = 7, .duplicate = true}),
                                  Reply({.sequence = 2, .applied = 8})}),
              IsEmpty());
  EXPECT_THAT(Watch<AppliedOnce>({Reply({.applied = 7}), Reply({.applied = 8, .duplicate = true})}),
              ElementsAre(HasSubstr("version 7, then at 8")));
  EXPECT_THAT(Watch<AppliedOnce>({Reply({.applied = 0}), Reply({.applied = 0, .request = 1})}),
              ElementsAre(HasSubstr("push 1")));
}

TEST(AppliedOnceTest, AStepIsOnePushInAllGenerationsOfItsGroup) {
  EXPECT_THAT(Watch<AppliedOnce>(
                  {Reply({.applied = 7}),
                   Reply({.group_generation = 2, .applied = 7, .duplicate = true, .request = 1})}),
              IsEmpty());
  EXPECT_THAT(
      Watch<AppliedOnce>({Reply({.applied = 7}), Reply({.group_generation = 2, .applied = 8})}),
      ElementsAre(HasSubstr("version 7, then at 8")));
}

// A push that was not durable is lost with its server, and is new to the next one.
TEST(AppliedOnceTest, WhatIsNotDurableMayBeForgotten) {
  EXPECT_THAT(Watch<AppliedOnce>(
                  {Reply({.applied = 0, .durable = false}), Reply({.owner = 3, .applied = 7})}),
              IsEmpty());
  EXPECT_THAT(Watch<AppliedOnce>({Reply({.applied = 6}), Reply({.owner = 3, .applied = 7})}),
              ElementsAre(HasSubstr("version 6, then at 7")));
}

// A push of node 9, or of another one that asks for values.
Message Push(uint64_t request, bool reads = false) {
  Message message = From(9, 2);
  message.envelope.mutable_header()->set_request_id(request);
  proto::PushRequest& push = *message.envelope.mutable_push_request();
  if (reads) push.mutable_read();
  return message;
}

TEST(AnsweredPushesTest, TheLeaseOfWhoHeldAShardAloneMayHaveToEnd) {
  const absl::Time healed = absl::UnixEpoch();
  const auto watch = [&](const Message& view) {
    Violations violations;
    AnsweredPushes checker(
        {.within = absl::Seconds(10), .lease = absl::Seconds(40)}, [healed] { return healed; },
        violations);
    checker.OnSend(healed, view);
    Message push = Push(1);
    push.envelope.mutable_push_request()->mutable_id()->set_table(1);
    checker.OnSend(healed, push);
    checker.OnSend(healed + absl::Seconds(55), push);
    const bool is_patient = violations.empty();
    checker.OnSend(healed + absl::Seconds(56), push);
    EXPECT_FALSE(violations.empty());
    return is_patient;
  };
  EXPECT_TRUE(watch(ViewWithChain(2, 3, {.joined = {2}, .joining = {3}})));
  EXPECT_FALSE(watch(ViewWithChain(2, 3, {.joined = {2, 3}})));
}

TEST(AnsweredPushesTest, WithoutFaultsAPushIsAnsweredSoon) {
  const absl::Time start = absl::UnixEpoch();
  const absl::Time healed = start + absl::Seconds(100);
  Violations violations;
  AnsweredPushes checker(
      {.within = absl::Seconds(10)}, [healed] { return healed; }, violations);
  checker.OnSend(start, Push(1));
  checker.OnSend(start, Push(2));
  checker.OnSend(start, Push(3, /*reads=*/true));
  checker.OnSend(start, Push(4));
  checker.OnSend(start + absl::Seconds(50), Push(1));
  checker.OnSend(healed + absl::Seconds(1), Reply({.to = 9, .request = 2}));
  checker.OnSend(healed + absl::Seconds(10), Push(1));
  // It has been answered, and asks whether it is durable; or it may wait for others.
  checker.OnSend(healed + absl::Seconds(11), Push(2));
  checker.OnSend(healed + absl::Seconds(11), Push(3, /*reads=*/true));
  EXPECT_THAT(violations.found(), IsEmpty());
  Message refused = Reply({.to = 9, .request = 4});
  SetStatus(absl::UnavailableError("the lease has expired"), refused);
  checker.OnSend(healed + absl::Seconds(11), refused);
  checker.OnSend(healed + absl::Seconds(11), Push(4));
  EXPECT_THAT(violations.found(),
              ElementsAre(HasSubstr("request 4 of node 9 has not been answered for 11s")));
}

TEST(AskedHistoryTest, NobodyIsServedFromAnotherHistory) {
  Message request = From(9, 2);
  request.envelope.mutable_push_request()->set_shard_generation(3);
  EXPECT_THAT(Watch<AskedHistory>({request, Reply({.generation = 3})}), IsEmpty());
  EXPECT_THAT(Watch<AskedHistory>({request, Reply({.generation = 4})}),
              ElementsAre(HasSubstr("generation 4")));
}

// A snapshot of server 2 or 3, under the chain of epoch 5.
ReplicaSnapshot Holds(uint64_t node, uint64_t index, uint64_t digest, uint64_t durable = 0) {
  return {.server = absl::StrCat("server-", node),
          .node = NodeId(node),
          .shard = {TableId(1), ShardIndex(0)},
          .generation = 3,
          .chain_epoch = 5,
          .has_content = true,
          .index = index,
          .durable = durable,
          .version = index,
          .digest = digest};
}

proto::ClusterView ChainOf(const Chained& chained, uint64_t epoch = 5) {
  return ViewWithChain(epoch, 3, chained).envelope.watch_view_reply().view();
}

TEST(ChainFenceTest, OnlyTheOwnChainsRecordsAreTaken) {
  // Server 3, of the chain of epoch 5, receives record 8 by the chain of `epoch`.
  const auto receive = [](uint64_t epoch, uint64_t index_after) {
    Violations violations;
    ChainFence::Held held{.generation = 3, .chain_epoch = 5, .index = 7};
    ChainFence checker([&](absl::string_view, uint32_t, ShardId) { return held; }, violations);
    Message message = From(2, 3);
    proto::ReplicateRequest& request = *message.envelope.mutable_replicate_request();
    request.mutable_chain()->set_generation(3);
    request.mutable_chain()->set_chain_epoch(epoch);
    request.set_index(8);
    checker.OnReceive(absl::UnixEpoch(), "server-3", message);
    held.index = index_after;
    checker.OnReceived(absl::UnixEpoch(), "server-3", message);
    return violations.found();
  };
  EXPECT_THAT(receive(5, 8), IsEmpty());
  EXPECT_THAT(receive(4, 7), IsEmpty());
  EXPECT_THAT(receive(4, 8), ElementsAre(HasSubstr("by that of epoch 4")));
  EXPECT_THAT(receive(6, 8), ElementsAre(HasSubstr("took record 8")));
}

TEST(EqualReplicasTest, ARecordHasOneContent) {
  const proto::ClusterView view = ChainOf({.joined = {2, 3}});
  const auto look = [&](const std::vector<std::vector<ReplicaSnapshot>>& looks) {
    Violations violations;
    EqualReplicas checker(violations);
    for (const auto& replicas : looks) checker.Look(view, replicas);
    return violations.found();
  };
  EXPECT_THAT(look({{Holds(2, 7, 70), Holds(3, 6, 60)}, {Holds(2, 8, 80), Holds(3, 7, 70)}}),
              IsEmpty());
  EXPECT_THAT(look({{Holds(2, 7, 70), Holds(3, 7, 71)}}), ElementsAre(HasSubstr("at record 7")));
  EXPECT_THAT(look({{Holds(2, 7, 70)}, {Holds(2, 8, 80), Holds(3, 7, 71)}}),
              ElementsAre(HasSubstr("server-3 does not hold what server-2 held")));
  // A server that has not learned of the chain yet may hold other content.
  ReplicaSnapshot late = Holds(3, 7, 71);
  late.chain_epoch = 4;
  EXPECT_THAT(look({{Holds(2, 7, 70), late}}), IsEmpty());
}

TEST(EqualReplicasTest, WhatIsDurableStaysOverChangesOfTheChain) {
  const auto look = [&](uint64_t durable, uint64_t digest_of_heir) {
    Violations violations;
    EqualReplicas checker(violations);
    checker.Look(ChainOf({.joined = {2, 3}}), {Holds(2, 7, 70, durable)});
    ReplicaSnapshot heir = Holds(3, 7, digest_of_heir);
    heir.chain_epoch = 6;
    checker.Look(ChainOf({.joined = {3}}, 6), {heir});
    return violations.found();
  };
  EXPECT_THAT(look(7, 70), IsEmpty());
  EXPECT_THAT(look(6, 71), IsEmpty());
  EXPECT_THAT(look(7, 71), ElementsAre(HasSubstr("of epoch 6")));
}

TEST(EqualReplicasTest, AtRestAllHoldWhatTheHeadHolds) {
  const proto::ClusterView view = ChainOf({.joined = {2, 3}, .joining = {4}});
  EXPECT_EQ(EqualReplicas::WhyUnequal(view, {Holds(2, 7, 70), Holds(3, 7, 70)}), "");
  EXPECT_THAT(EqualReplicas::WhyUnequal(view, {Holds(2, 7, 70), Holds(3, 6, 60)}),
              HasSubstr("server-3 record 6"));
  EXPECT_THAT(EqualReplicas::WhyUnequal(view, {Holds(2, 7, 70), Holds(3, 7, 71)}),
              HasSubstr("digest 47"));
  EXPECT_THAT(EqualReplicas::WhyUnequal(view, {Holds(2, 7, 70)}), HasSubstr("does not run"));
  ReplicaSnapshot empty = Holds(3, 0, 0);
  empty.has_content = false;
  EXPECT_THAT(EqualReplicas::WhyUnequal(view, {Holds(2, 7, 70), empty}),
              HasSubstr("server-3 nothing"));
}

TEST(RowBudgetTest, AServerWithTooManyRowsIsNamed) {
  const auto look = [&](uint64_t shards, uint64_t rows_of_replica) {
    Violations violations;
    proto::ClusterView view;
    proto::Table& table = *view.add_tables();
    table.set_id(1);
    table.mutable_spec()->mutable_sparse()->set_rows_max(100);
    proto::Shard& shard = *table.add_shards();
    shard.set_index(0);
    shard.set_element_count(kKeySlots / shards);
    ReplicaSnapshot replica = Holds(2, 7, 70);
    replica.rows = rows_of_replica;
    RowBudget(violations).Look(view, {replica});
    return violations.found();
  };
  EXPECT_THAT(look(1, 100), IsEmpty());
  EXPECT_THAT(look(1, 101), ElementsAre(HasSubstr("server-2 holds 101 rows")));
  EXPECT_THAT(look(4, 26), IsEmpty());
  EXPECT_THAT(look(4, 27), ElementsAre(HasSubstr("more than 26.25")));
}

TEST(ReturnedFramesTest, AKeptFrameIsNamed) {
  Violations violations;
  ReturnedFrames checker(violations);
  Message push = From(4);
  push.envelope.mutable_push_request();
  checker.OnReceived(absl::UnixEpoch(), "server-1", push);
  EXPECT_THAT(violations.found(), IsEmpty());
  checker.OnFramesKept(absl::UnixEpoch(), "server-1", push, 1);
  EXPECT_THAT(violations.found(),
              ElementsAre(HasSubstr("server-1 keeps 1 lent frame of push_request 4.0 -> 9.0")));
}

TEST(FencedProducersTest, AnOldGenerationIsRefused) {
  const Message old_push = Reply({.sequence = 1, .group_generation = 1});
  const Message new_push = Reply({.sequence = 2, .group_generation = 2});
  EXPECT_THAT(Watch<FencedProducers>({old_push, new_push}), IsEmpty());
  EXPECT_THAT(Watch<FencedProducers>({new_push, old_push}),
              ElementsAre(HasSubstr("generation 1 after one of 2")));
}

TEST(EqualViewsTest, ANodeHoldsTheViewThatWasPublished) {
  const Message published = ViewWithNode(4, proto::Node::ALIVE);
  const auto found = [&](const Message& held) {
    Violations violations;
    auto view = ClusterView::Make(held.envelope.watch_view_reply().view());
    EqualViews checker([&](absl::string_view) { return view->get(); }, violations);
    checker.OnSend(absl::UnixEpoch(), published);
    checker.OnReceived(absl::UnixEpoch(), "worker-1", published);
    return violations.found();
  };
  EXPECT_THAT(found(published), IsEmpty());
  EXPECT_THAT(found(View(0)), IsEmpty()) << "it has not registered yet";
  EXPECT_THAT(found(ViewWithNode(4, proto::Node::DEAD)),
              ElementsAre(HasSubstr("worker-1 holds another view of epoch 4")));
  EXPECT_THAT(found(ViewWithNode(5, proto::Node::ALIVE)),
              ElementsAre(HasSubstr("worker-1 holds another view of epoch 5")));
}

}  // namespace
}  // namespace covey::sim

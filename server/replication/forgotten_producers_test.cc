// SPDX-License-Identifier: Apache-2.0
#include "common/base/small_limits_switch.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/replication/push_history.h"
#include "server/testing/chain_fixture.h"

// A shard forgets the pushes of producers that are gone, on all replicas at once.

namespace covey::server {
namespace {

constexpr Contract kAsync{.kind = Contract::Kind::kAsync};
constexpr Producer kClient{.kind = Producer::Kind::kClient, .id = kTestClient.value()};

Producer Group(uint64_t id) { return {.kind = Producer::Kind::kGroup, .id = id}; }

class ForgottenProducers : public ::testing::Test {
 protected:
  static void ClientLeaves(ChainDriver& chain) {
    for (proto::Node& node : *chain.job.view.mutable_nodes()) {
      if (NodeId(node.id()) == kTestClient) node.set_state(proto::Node::LEFT);
    }
    chain.job.view.set_epoch(chain.job.view.epoch() + 1);
  }
  // The client and two groups push; then the client and group 1 go.
  void PushAndLeave(ChainDriver& chain) {
    Publish(chain);
    chain.Ask(0, requests_.ClientPush(1, {1, 1, 1, 1}));
    chain.Ask(0, requests_.GroupPush(1, 1, {1, 1, 1, 1}));
    chain.Ask(0, requests_.GroupPush(2, 1, {1, 1, 1, 1}));
    ClientLeaves(chain);
    chain.job.EndGroup(1, proto::Group::BROKEN);
  }
  static void Publish(ChainDriver& chain) {
    chain.PublishToAll();
    chain.Settle();
  }
  // A view that changes nothing, long after those that are gone went.
  static void PublishLater(ChainDriver& chain) {
    Publish(chain);
    EXPECT_TRUE(History(chain, 0).Knows(Group(1))) << "at once";
    chain.Pass(absl::Minutes(10));
    chain.job.view.set_epoch(chain.job.view.epoch() + 1);
    Publish(chain);
  }
  static const PushHistory& History(ChainDriver& chain, uint32_t server) {
    return chain.replica(server).content()->push_history();
  }

  ShardDriver requests_{TestJob(kAsync, 3)};
};

TEST_F(ForgottenProducers, WhoIsGoneIsForgottenByAllReplicas) {
  ChainDriver chain(kAsync, 2, 3, 3);
  PushAndLeave(chain);
  PublishLater(chain);
  for (uint32_t server = 0; server < 3; ++server) {
    EXPECT_FALSE(History(chain, server).Knows(kClient)) << server;
    EXPECT_FALSE(History(chain, server).Knows(Group(1))) << server;
    EXPECT_TRUE(History(chain, server).Knows(Group(2))) << server;
    EXPECT_EQ(chain.Digest(server), chain.Digest(0)) << server;
    EXPECT_EQ(chain.replica(server).content()->version(), Version(3)) << server;
  }
  // A copy of a push that comes late is refused, not applied again.
  EXPECT_EQ(StatusOf(chain.Ask(0, requests_.ClientPush(1, {1, 1, 1, 1}))).code(),
            absl::StatusCode::kAborted);
}

// A head that leads only for a minute forgets clients, too.
TEST_F(ForgottenProducers, ClientsAreForgottenSoonerThanGroups) {
  ChainDriver chain(kAsync, 2, 2, 2);
  PushAndLeave(chain);
  Publish(chain);
  EXPECT_TRUE(History(chain, 0).Knows(kClient));
  chain.Pass(PushPipeline::kForgetClientAfter);
  chain.job.view.set_epoch(chain.job.view.epoch() + 1);
  Publish(chain);
  EXPECT_FALSE(History(chain, 0).Knows(kClient));
  EXPECT_TRUE(History(chain, 0).Knows(Group(1)));
}

// A replica that is filled counts pushes on from the newest one, so its producer stays.
TEST_F(ForgottenProducers, AReplicaThatJoinsAfterwardsCountsOnAlike) {
  ChainDriver chain(kAsync, 2, 2, 1);
  Publish(chain);
  chain.Ask(0, requests_.GroupPush(1, 1, {1, 1, 1, 1}));
  chain.Ask(0, requests_.ClientPush(1, {1, 1, 1, 1}));
  chain.job.EndGroup(1, proto::Group::BROKEN);
  ClientLeaves(chain);
  PublishLater(chain);
  EXPECT_FALSE(History(chain, 0).Knows(Group(1)));
  EXPECT_TRUE(History(chain, 0).Knows(kClient));
  EXPECT_TRUE(chain.replica(0).content()->has_pushes());

  chain.SetChain({{0, false}, {1, true}});
  Publish(chain);
  chain.Pass(absl::Milliseconds(100));
  chain.Ask(0, requests_.GroupPush(2, 1, {1, 1, 1, 1}));
  ASSERT_NE(chain.Digest(1), 0u);
  EXPECT_EQ(chain.Digest(1), chain.Digest(0));
}

// A push that waits is part of a later update, and is known until then.
TEST_F(ForgottenProducers, APushThatWaitsKeepsItsProducer) {
  ChainDriver chain({.kind = Contract::Kind::kBuffered, .buffer = 3}, 3, 2, 2);
  Publish(chain);
  for (const uint32_t group : {1, 2, 3}) {
    chain.Ask(0, requests_.GroupPush(group, 1, {1, 1, 1, 1}));
  }
  chain.Ask(0, requests_.GroupPush(1, 2, {1, 1, 1, 1}));
  chain.job.EndGroup(1, proto::Group::BROKEN);
  PublishLater(chain);
  EXPECT_TRUE(History(chain, 0).Knows(Group(1)));
  chain.Ask(0, requests_.GroupPush(2, 2, {1, 1, 1, 1}));
  EXPECT_EQ(chain.replica(0).content()->version(), Version(2));
  chain.job.view.set_epoch(chain.job.view.epoch() + 1);
  Publish(chain);
  EXPECT_FALSE(History(chain, 0).Knows(Group(1)));
  EXPECT_EQ(chain.Digest(1), chain.Digest(0));
}

// The ninth comes after a view in which the first had gone, when there was room for one more.
TEST_F(ForgottenProducers, WhoIsGoneMakesRoomWithoutAnotherView) {
  SetSmallLimits(true);
  ChainDriver chain(kAsync, 8, 1, 1);
  ShardDriver requests(TestJob(kAsync, 8));
  Publish(chain);
  for (uint32_t group = 1; group <= 7; ++group) {
    chain.Ask(0, requests.GroupPush(group, 1, {1, 1, 1, 1}));
  }
  chain.job.EndGroup(1, proto::Group::BROKEN);
  Publish(chain);
  EXPECT_TRUE(History(chain, 0).Knows(Group(1)));
  chain.Ask(0, requests.GroupPush(8, 1, {1, 1, 1, 1}));
  EXPECT_TRUE(StatusOf(chain.Ask(0, requests.ClientPush(1, {1, 1, 1, 1}))).ok());
  EXPECT_FALSE(History(chain, 0).Knows(Group(1)));
  EXPECT_TRUE(History(chain, 0).Knows(Group(2)));
  SetSmallLimits(false);
}

// Nine in all, if those with a push that waits for others counted twice.
TEST_F(ForgottenProducers, AProducerWhosePushWaitsCountsOnce) {
  SetSmallLimits(true);
  const Contract buffered{.kind = Contract::Kind::kBuffered, .buffer = 5};
  ChainDriver chain(buffered, 5, 1, 1);
  ShardDriver requests(TestJob(buffered, 5));
  Publish(chain);
  for (uint32_t group = 1; group <= 5; ++group) {
    chain.Ask(0, requests.GroupPush(group, 1, {1, 1, 1, 1}));
  }
  for (uint32_t group = 1; group <= 4; ++group) {
    chain.Ask(0, requests.GroupPush(group, 2, {1, 1, 1, 1}));
  }
  EXPECT_TRUE(StatusOf(chain.Ask(0, requests.ClientPush(1, {1, 1, 1, 1}))).ok());
  SetSmallLimits(false);
}

TEST_F(ForgottenProducers, WhoLivesDoesNotMakeRoom) {
  SetSmallLimits(true);
  ChainDriver chain(kAsync, 8, 1, 1);
  ShardDriver requests(TestJob(kAsync, 8));
  Publish(chain);
  for (uint32_t group = 1; group <= 8; ++group) {
    chain.Ask(0, requests.GroupPush(group, 1, {1, 1, 1, 1}));
  }
  const Message refused = chain.Ask(0, requests.ClientPush(1, {1, 1, 1, 1}));
  EXPECT_EQ(StatusOf(refused).code(), absl::StatusCode::kResourceExhausted);
  {
    const BugInPlace bug(PlantedBug::kForgetLiveProducers);
    EXPECT_TRUE(StatusOf(chain.Ask(0, requests.ClientPush(1, {1, 1, 1, 1}))).ok());
    EXPECT_FALSE(History(chain, 0).Knows(Group(1)));
  }
  SetSmallLimits(false);
}

}  // namespace
}  // namespace covey::server

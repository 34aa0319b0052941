// Each checker is silent about a good conversation and complains about a bad one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/sim/checkers/applied_once.h"
#include "tests/sim/checkers/asked_history.h"
#include "tests/sim/checkers/departed_nodes.h"
#include "tests/sim/checkers/fenced_producers.h"
#include "tests/sim/checkers/one_owner.h"
#include "tests/sim/checkers/shard_clocks.h"
#include "tests/sim/checkers/view_history.h"

namespace covey::sim {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

template <typename Checker>
std::vector<std::string> Watch(const std::vector<Message>& messages) {
  Violations violations;
  Checker checker(violations);
  for (const Message& message : messages) checker.OnSend(absl::UnixEpoch(), message);
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

Message ViewWithShard(uint64_t epoch, uint64_t owner, uint64_t generation) {
  Message message = From(1);
  proto::Table& table = *AddView(epoch, message).add_tables();
  table.set_id(1);
  proto::Shard& shard = *table.add_shards();
  shard.set_generation(generation);
  shard.add_chain()->set_node(owner);
  return message;
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
};

Message Reply(const Pushed& pushed) {
  Message message = From(pushed.owner);
  proto::PushReply& reply = *message.envelope.mutable_push_reply();
  reply.mutable_id()->set_table(1);
  reply.mutable_id()->set_producer(4);
  reply.mutable_id()->set_producer_kind(proto::PushId::GROUP);
  reply.mutable_id()->set_producer_incarnation(pushed.group_generation);
  reply.mutable_id()->set_sequence(pushed.sequence);
  reply.set_applied_version(pushed.applied);
  reply.set_duplicate(pushed.duplicate);
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

TEST(OneOwnerTest, OneHistoryHasOneOwner) {
  EXPECT_THAT(Watch<OneOwner>({ViewWithShard(3, 2, 3), Reply({}), ViewWithShard(4, 5, 4),
                               Reply({.owner = 5, .generation = 4}), Reply({})}),
              IsEmpty());
  EXPECT_THAT(Watch<OneOwner>({ViewWithShard(3, 2, 3), Reply({.owner = 5})}),
              ElementsAre(HasSubstr("does not own")));
  EXPECT_THAT(Watch<OneOwner>({ViewWithShard(3, 2, 3), ViewWithShard(4, 5, 3)}),
              ElementsAre(HasSubstr("is on node 5")));
  EXPECT_THAT(Watch<OneOwner>({ViewWithShard(3, 2, 3), ViewWithShard(4, 2, 2)}),
              ElementsAre(HasSubstr("before, generation 3")));
}

TEST(ShardClocksTest, NothingGoesBack) {
  EXPECT_THAT(Watch<ShardClocks>({Reply({}), Reply({.version = 2, .clock = 2}),
                                  Reply({.version = 0, .clock = 0, .generation = 4})}),
              IsEmpty());
  EXPECT_THAT(Watch<ShardClocks>({Reply({.version = 2}), Reply({.version = 1})}),
              ElementsAre(HasSubstr("version 2 to 1")));
  EXPECT_THAT(Watch<ShardClocks>({Reply({.clock = 2}), Reply({.clock = 1})}),
              ElementsAre(HasSubstr("went back")));
}

TEST(AppliedOnceTest, APushHasOneVersion) {
  EXPECT_THAT(Watch<AppliedOnce>({Reply({.applied = 0}), Reply({.applied = 7, .duplicate = true}),
                                  Reply({.applied = 7, .duplicate = true}),
                                  Reply({.sequence = 2, .applied = 8})}),
              IsEmpty());
  EXPECT_THAT(Watch<AppliedOnce>({Reply({.applied = 7}), Reply({.applied = 8, .duplicate = true})}),
              ElementsAre(HasSubstr("version 7, then at 8")));
  EXPECT_THAT(Watch<AppliedOnce>({Reply({.applied = 0}), Reply({.applied = 0})}),
              ElementsAre(HasSubstr("push 1")));
}

TEST(AskedHistoryTest, NobodyIsServedFromAnotherHistory) {
  Message request = From(9, 2);
  request.envelope.mutable_push_request()->set_shard_generation(3);
  EXPECT_THAT(Watch<AskedHistory>({request, Reply({.generation = 3})}), IsEmpty());
  EXPECT_THAT(Watch<AskedHistory>({request, Reply({.generation = 4})}),
              ElementsAre(HasSubstr("generation 4")));
}

TEST(FencedProducersTest, AnOldGenerationIsRefused) {
  const Message old_push = Reply({.sequence = 1, .group_generation = 1});
  const Message new_push = Reply({.sequence = 2, .group_generation = 2});
  EXPECT_THAT(Watch<FencedProducers>({old_push, new_push}), IsEmpty());
  EXPECT_THAT(Watch<FencedProducers>({new_push, old_push}),
              ElementsAre(HasSubstr("generation 1 after one of 2")));
}

}  // namespace
}  // namespace covey::sim

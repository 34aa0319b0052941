// SPDX-License-Identifier: Apache-2.0
#include "scheduler/nodes/scaling.h"

#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/state/view_lookup.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ScalingTest : public ::testing::Test {
 protected:
  void AddNode(proto::Role role, uint32_t rank) {
    proto::Node& node = *state_.mutable_view()->add_nodes();
    node.set_id(static_cast<uint64_t>(state_.view().nodes_size()) + 1);
    node.set_role(role);
    node.set_rank(rank);
    node.set_name(NodeName(role, rank));
    node.set_state(proto::Node::ALIVE);
  }
  void AddServers(uint32_t count) {
    for (uint32_t rank = 0; rank < count; ++rank) AddNode(proto::SERVER, rank);
  }
  // One shard whose only replica is on `node`.
  void AddShard(uint64_t node) {
    state_.mutable_view()->add_tables()->add_shards()->add_chain()->set_node(node);
  }
  static proto::DrainRequest DrainOf(const std::string& name) {
    proto::DrainRequest request;
    request.set_node(name);
    return request;
  }
  absl::StatusOr<Epoch> Drain(const std::string& name, bool cancel = false) {
    proto::DrainRequest request = DrainOf(name);
    request.set_cancel(cancel);
    return scaling_.Drain(request, "asked by a test");
  }
  std::vector<std::string> Draining() const {
    std::vector<std::string> names;
    for (const proto::Node& node : state_.view().nodes()) {
      if (node.draining()) names.push_back(node.name());
    }
    return names;
  }

  TestState state_;
  AwayWorkers away_{state_};
  Groups groups_{{}, state_, away_};
  Scaling scaling_{/*has_store=*/false, state_, groups_};
  Scaling with_store_{/*has_store=*/true, state_, groups_};
};

TEST_F(ScalingTest, ADrainIsAskedForOnceAndCanBeTakenBack) {
  AddServers(2);
  const auto change = Drain("server-1");
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(*change, Epoch(1));
  EXPECT_EQ(state_.News(), "server-1 drains: asked by a test");
  EXPECT_THAT(Draining(), ElementsAre("server-1"));
  ASSERT_TRUE(Drain("server-1").ok());
  EXPECT_EQ(state_.News(), "");
  EXPECT_EQ(state_.view().epoch(), 1u);
  ASSERT_TRUE(Drain("server-1", /*cancel=*/true).ok());
  EXPECT_EQ(state_.News(), "server-1 stays after all: asked by a test");
  EXPECT_THAT(Draining(), ElementsAre());
  ASSERT_TRUE(Drain("server-1", /*cancel=*/true).ok());
  EXPECT_EQ(state_.News(), "");
  EXPECT_EQ(state_.view().epoch(), 2u);
}

TEST_F(ScalingTest, OnlyLiveServersAndWorkersDrain) {
  AddServers(2);
  AddNode(proto::CLIENT, 0);
  state_.mutable_view()->mutable_nodes(0)->set_state(proto::Node::DEAD);
  for (const char* name : {"server-0", "client-0", "worker-0", ""}) {
    const absl::Status status = Drain(name).status();
    EXPECT_TRUE(absl::IsNotFound(status)) << name << " " << status;
  }
  EXPECT_EQ(state_.view().epoch(), 0u);
  // Its replacement has the same name.
  AddNode(proto::SERVER, 0);
  ASSERT_TRUE(Drain("server-0").ok());
  EXPECT_TRUE(state_.view().nodes(3).draining());
}

TEST_F(ScalingTest, TheLastServerWithShardsStays) {
  AddServers(2);
  AddShard(3);
  ASSERT_TRUE(Drain("server-0").ok());
  const absl::Status status = Drain("server-1").status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("it holds 1 shards"));
  state_.mutable_view()->clear_tables();
  EXPECT_TRUE(Drain("server-1").ok()) << "it holds nothing";
}

TEST_F(ScalingTest, TheSchedulerStaysForServersThatLeave) {
  AddServers(2);
  EXPECT_TRUE(scaling_.SchedulerMayEnd(absl::ZeroDuration())) << "without a store";
  EXPECT_FALSE(with_store_.SchedulerMayEnd(absl::Milliseconds(999))) << "their signals may follow";
  EXPECT_TRUE(with_store_.SchedulerMayEnd(absl::Seconds(1))) << "it alone is to end";
  ASSERT_TRUE(Drain("server-0").ok());
  EXPECT_FALSE(with_store_.SchedulerMayEnd(absl::Seconds(20)))
      << "the signal of the other may follow";
  state_.mutable_view()->mutable_nodes(0)->set_state(proto::Node::LEFT);
  EXPECT_TRUE(with_store_.SchedulerMayEnd(absl::Seconds(20)));
  state_.mutable_view()->mutable_nodes(1)->set_state(proto::Node::LEFT);
  EXPECT_TRUE(with_store_.SchedulerMayEnd(absl::ZeroDuration()));
}

TEST_F(ScalingTest, TheJobClosesWhenTheLastServerMustLeave) {
  AddServers(2);
  AddShard(3);
  proto::DrainRequest request;
  request.set_must_leave(true);
  const auto drain = [&](Scaling& scaling, const char* name) {
    request.set_node(name);
    return scaling.Drain(request, "signal 15").status();
  };
  ASSERT_TRUE(drain(with_store_, "server-0").ok());
  EXPECT_FALSE(state_.view().has_closing()) << "server-1 stays";
  request.set_must_leave(false);
  EXPECT_TRUE(absl::IsFailedPrecondition(drain(with_store_, "server-1"))) << "a person's wish";
  request.set_must_leave(true);
  EXPECT_TRUE(absl::IsFailedPrecondition(drain(scaling_, "server-1"))) << "without a store";
  ASSERT_TRUE(drain(with_store_, "server-1").ok());
  EXPECT_TRUE(state_.view().has_closing());
  EXPECT_THAT(Draining(), ElementsAre("server-0", "server-1"));
  EXPECT_THAT(state_.News(), HasSubstr("the job closes with server-1"));
  ASSERT_TRUE(drain(with_store_, "server-1").ok());
  EXPECT_EQ(state_.News(), "");
  with_store_.Tick();
  EXPECT_TRUE(state_.view().has_closing());
  // One that came meanwhile leaves, too, before the next tick.
  AddNode(proto::SERVER, 2);
  AddShard(4);
  ASSERT_TRUE(drain(with_store_, "server-2").ok());
  EXPECT_EQ(state_.News(), "server-2 drains: signal 15");
  AddServers(1);
  with_store_.Tick();
  EXPECT_FALSE(state_.view().has_closing());
}

TEST_F(ScalingTest, ADrainingServerCanCloseTheJobWhenTheOthersAreGone) {
  AddServers(2);
  AddShard(2);
  ASSERT_TRUE(Drain("server-0").ok());
  state_.mutable_view()->mutable_nodes(1)->set_state(proto::Node::DEAD);
  ASSERT_TRUE(Drain("server-0").ok()) << "it drains already";
  proto::DrainRequest request;
  request.set_node("server-0");
  request.set_must_leave(true);
  EXPECT_TRUE(absl::IsFailedPrecondition(scaling_.Drain(request, "").status()));
  EXPECT_TRUE(with_store_.Drain(request, "").ok());
  EXPECT_TRUE(state_.view().has_closing());
}

TEST_F(ScalingTest, ScalingDrainsTheHighestRanks) {
  AddServers(4);
  for (uint32_t rank = 0; rank < 3; ++rank) AddNode(proto::WORKER, rank);
  ASSERT_TRUE(Drain("server-3").ok());
  state_.News();
  proto::ScaleRequest request;
  request.set_servers(2);
  request.set_workers(2);
  const auto change = scaling_.Scale(request, "asked by a test");
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(state_.News(),
            "wanted: 2 servers and 2 workers, asked by a test; server-2, worker-2 to drain");
  EXPECT_THAT(Draining(), ElementsAre("server-2", "server-3", "worker-2"));
  EXPECT_EQ(state_.view().wanted_servers(), 2u);
  EXPECT_EQ(state_.view().wanted_workers(), 2u);
  EXPECT_EQ(state_.view().epoch(), 2u);
  ASSERT_TRUE(scaling_.Scale(request, "").ok());
  EXPECT_EQ(state_.News(), "");
  EXPECT_EQ(state_.view().epoch(), 2u);
}

TEST_F(ScalingTest, AWorkerThatDrainsLeavesItsGroupAndMayComeBack) {
  proto::Group& group = *state_.mutable_view()->add_groups();
  group.set_id(1);
  group.set_state(proto::Group::ACTIVE);
  for (uint32_t rank = 0; rank < 2; ++rank) {
    AddNode(proto::WORKER, rank);
    group.add_members(rank + 2);
  }
  ASSERT_TRUE(with_store_.Drain(DrainOf("worker-1"), "by ada").ok());
  EXPECT_THAT(state_.News(), HasSubstr("group 1 goes on without worker-1"));
  EXPECT_FALSE(state_.view().has_closing());
  EXPECT_THAT(state_.view().groups(0).members(), ElementsAre(2u));
  EXPECT_EQ(state_.view().nodes(1).standby(), "it drains");
  ASSERT_TRUE(Drain("worker-1", /*cancel=*/true).ok());
  EXPECT_EQ(state_.view().nodes(1).standby(), "") << "it is placed like a late one";
}

TEST_F(ScalingTest, ScalingUpOnlyTellsAndWhatIsNotSaidStays) {
  AddServers(1);
  proto::ScaleRequest request;
  request.set_servers(3);
  ASSERT_TRUE(scaling_.Scale(request, "").ok());
  EXPECT_EQ(state_.view().wanted_servers(), 3u);
  EXPECT_EQ(state_.view().wanted_workers(), 0u);
  EXPECT_THAT(Draining(), ElementsAre());
}

TEST_F(ScalingTest, ImpossibleNumbersAreRefusedWhole) {
  AddServers(2);
  proto::ScaleRequest request;
  request.set_servers(1);
  request.set_workers(0);
  EXPECT_TRUE(absl::IsInvalidArgument(scaling_.Scale(request, "").status()));
  request.set_servers(1 << 30);
  request.clear_workers();
  EXPECT_TRUE(absl::IsInvalidArgument(scaling_.Scale(request, "").status()));
  EXPECT_THAT(Draining(), ElementsAre());
  EXPECT_EQ(state_.view().wanted_servers(), 0u);
}

}  // namespace
}  // namespace covey::scheduler

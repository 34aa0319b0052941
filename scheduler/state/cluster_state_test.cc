// SPDX-License-Identifier: Apache-2.0
#include "scheduler/state/cluster_state.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class ClusterStateTest : public ::testing::Test {
 protected:
  // Epochs of shards that were edited one after the other, in transactions of this scope.
  uint64_t EditShard(Transaction::EpochScope scope) {
    Transaction change(state_, scope);
    if (state_.view().tables().empty()) change.EditView().add_tables()->add_shards();
    const uint64_t epoch = change.EditChain(state_.view().tables(0).shards(0)).chain_epoch();
    change.Add(ReplicaReportsTaken{});
    change.Commit();
    return epoch;
  }

  TestState state_;
};

TEST_F(ClusterStateTest, ACommitRaisesTheEpochOnceHoweverMuchWasEdited) {
  {
    Transaction change(state_);
    EXPECT_EQ(change.epoch(), Epoch(1));
    proto::Node& node = *change.EditView().add_nodes();
    change.Edit(node).set_draining(true);
    change.Add(DrainRequested{.node = "server-0", .why = "asked by a test"});
    change.Add(WorkerStandsBy{.worker = "worker-1"});
    EXPECT_EQ(state_.epoch(), Epoch(0));
    change.Commit();
  }
  EXPECT_EQ(state_.epoch(), Epoch(1));
  EXPECT_THAT(state_.TakeTexts(),
              ElementsAre("server-0 drains: asked by a test; worker-1 stands by"));
  EXPECT_THAT(state_.TakeTexts(), IsEmpty());
}

TEST_F(ClusterStateTest, WhatNodesDoNotSeeRaisesNoEpochButIsLogged) {
  {
    Transaction change(state_);
    EXPECT_EQ(change.TakeNodeId(), kSchedulerNode.Next());
    change.Commit();
  }
  EXPECT_EQ(state_.epoch(), Epoch(0));
  ASSERT_TRUE(state_.has_unlogged());
  EXPECT_EQ(state_.NextRecord().index(), 1u);
  EXPECT_FALSE(state_.has_unlogged());
  EXPECT_THAT(state_.TakeTexts(), IsEmpty());
}

TEST_F(ClusterStateTest, ATransactionWithoutEditsLeavesNothing) {
  {
    Transaction committed(state_);
    committed.Commit();
  }
  { Transaction forgotten(state_); }
  EXPECT_EQ(state_.epoch(), Epoch(0));
  EXPECT_FALSE(state_.has_unlogged());
}

TEST_F(ClusterStateTest, RoutineEventsAreInTheRecordAndNotInTheDecisions) {
  {
    Transaction change(state_);
    change.Add(ExamplesFinished{.dataset = "digits", .examples = 3});
    change.Add(PassesFinished{.dataset = "digits", .finished = 1, .passes = 2});
    change.Commit();
  }
  EXPECT_THAT(state_.TakeTexts(), ElementsAre("work 'digits': 1 of 2 passes finished"));
  EXPECT_THAT(state_.NextRecord().decision(), HasSubstr("3 examples finished"));
  EXPECT_EQ(state_.NextRecord().decision(), "");
}

TEST_F(ClusterStateTest, EditsOfOneCallMayShareAnEpochThatNoNodeHasSeen) {
  using enum Transaction::EpochScope;
  state_.BeginCall();
  EXPECT_EQ(EditShard(kCall), 1u);
  EXPECT_EQ(EditShard(kCall), 1u);
  EXPECT_EQ(EditShard(kTransaction), 2u);
  EXPECT_EQ(EditShard(kCall), 2u);
  state_.BeginCall();
  EXPECT_EQ(EditShard(kCall), 3u);
  EXPECT_EQ(state_.epoch(), Epoch(3));
}

TEST_F(ClusterStateTest, ServersTablesAndDrainsAffectPlacement) {
  const auto affects = [&](Event event) {
    const uint64_t before = state_.placement_version();
    Transaction change(state_);
    change.Add(std::move(event));
    change.Commit();
    return state_.placement_version() != before;
  };
  EXPECT_TRUE(affects(NodeRegistered{.role = proto::SERVER}));
  EXPECT_FALSE(affects(NodeRegistered{.role = proto::WORKER}));
  EXPECT_TRUE(affects(NodeDied{}));
  EXPECT_TRUE(affects(TableCreated{}));
  EXPECT_TRUE(affects(DrainCancelled{}));
  EXPECT_FALSE(affects(ContractChanged{}));
  EXPECT_FALSE(affects(ShardsReconciled{}));
}

TEST_F(ClusterStateTest, ARecoveredJobWaitsForTheNodesThatItsOperatorExpectsNow) {
  proto::LogRecord recovered = state_.record();
  recovered.mutable_view()->set_waiting_for("server-0");
  const ClusterState state({.servers = 2, .groups = 0}, recovered);
  EXPECT_EQ(state.view().waiting_for(), "server-0, server-1");
  EXPECT_EQ(state.epoch(), Epoch(0));
}

using ClusterStateDeathTest = ClusterStateTest;

TEST_F(ClusterStateDeathTest, AnEditOfTheViewNeedsAnEvent) {
  const auto silent = [this] {
    Transaction change(state_);
    change.EditView().add_nodes();
    change.Commit();
  };
  EXPECT_DEATH(silent(), "events_.empty");
}

TEST_F(ClusterStateDeathTest, AnEditIsCommitted) {
  const auto forgotten = [this] {
    Transaction change(state_);
    change.EditView().add_nodes();
  };
  EXPECT_DEATH(forgotten(), "committed_");
}

TEST_F(ClusterStateDeathTest, ThereIsOneTransactionAtATime) {
  const auto nested = [this] {
    Transaction outer(state_);
    Transaction inner(state_);
  };
  EXPECT_DEATH(nested(), "in_transaction_");
}

}  // namespace
}  // namespace covey::scheduler

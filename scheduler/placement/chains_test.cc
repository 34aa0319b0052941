// SPDX-License-Identifier: Apache-2.0
#include "scheduler/placement/chains.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/planted_bug_switch.h"
#include "common/cluster/view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/tables/tables.h"

namespace covey::scheduler {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class ChainsTest : public ::testing::Test {
 protected:
  ~ChainsTest() override { PlantBug(PlantedBug::kNone); }

  // Server `rank`, as a new node of two data loops.
  uint64_t AddServer(uint32_t rank) {
    proto::Node& node = *state_.mutable_view()->add_nodes();
    node.set_id(static_cast<uint64_t>(state_.view().nodes_size()) + 1);
    node.set_role(proto::SERVER);
    node.set_rank(rank);
    node.set_name(absl::StrCat("server-", rank));
    node.set_state(proto::Node::ALIVE);
    for (int i = 0; i <= 2; ++i) node.add_endpoints(i == 0 ? "" : "tcp://127.0.0.1:1");
    state_.AffectPlacement();
    return node.id();
  }
  proto::Node& NodeOf(uint64_t id) {
    return *state_.mutable_view()->mutable_nodes(static_cast<int>(id) - 2);
  }
  void Die(uint64_t id) {
    NodeOf(id).set_state(proto::Node::DEAD);
    state_.AffectPlacement();
  }
  void Drain(uint64_t id, bool draining = true) {
    NodeOf(id).set_draining(draining);
    state_.AffectPlacement();
  }
  // Replicas: 1..5, or 0 = not set.
  void Create(const std::string& name, int shards, uint32_t replicas) {
    proto::TableSpec spec;
    spec.set_name(name);
    spec.set_data_type(proto::FLOAT32);
    spec.add_shape(16 * static_cast<uint64_t>(shards));
    spec.set_shard_bytes(64);
    spec.mutable_learning_rate()->set_base(0.1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    if (replicas == 1) {
      spec.set_durability(proto::MEMORY);
    } else {
      spec.set_replicas(replicas);
    }
    ASSERT_TRUE(tables_.Create(spec).ok());
    state_.AffectPlacement();
  }

  // A change has a new epoch and a decision.
  std::string Settle() {
    state_.BeginCall();
    return SettleSince(view());
  }
  std::string SettleSince(const proto::ClusterView before) {
    state_.News();
    chains_.Reconcile(now_);
    const std::string decision = state_.News();
    const bool changed = view().SerializeAsString() != before.SerializeAsString();
    EXPECT_EQ(view().epoch(), before.epoch() + (changed ? 1 : 0)) << decision;
    EXPECT_TRUE(!changed || !decision.empty());
    const auto checked = ClusterView::Make(view());
    EXPECT_TRUE(checked.ok()) << checked.status();
    return decision;
  }
  void Report(uint64_t sender, uint64_t node, const proto::Shard& shard,
              proto::ReplicaReport::Kind kind) {
    state_.BeginCall();
    ReportInThisCall(sender, node, shard, kind);
  }
  void ReportInThisCall(uint64_t sender, uint64_t node, const proto::Shard& shard,
                        proto::ReplicaReport::Kind kind) {
    proto::ReplicaReportRequest request;
    proto::ReplicaReport& report = *request.add_reports();
    report.set_table(1);
    report.set_shard(shard.index());
    report.set_generation(shard.generation());
    report.set_chain_epoch(shard.chain_epoch());
    report.set_node(node);
    report.set_kind(kind);
    chains_.OnReports(now_, NodeId(sender), request);
  }
  // Every joining replica becomes full; settles. False: there was none.
  bool Ready() {
    std::vector<proto::Shard> joining;
    for (const proto::Shard& shard : view().tables(0).shards()) {
      if (shard.chain().rbegin()->joining()) joining.push_back(shard);
    }
    const proto::ClusterView before = view();
    state_.BeginCall();
    for (const proto::Shard& shard : joining) {
      ReportInThisCall(shard.chain(0).node(), shard.chain().rbegin()->node(), shard,
                       proto::ReplicaReport::READY);
    }
    SettleSince(before);
    return !joining.empty();
  }
  void ReadyUntilQuiet() {
    int rounds = 0;
    Settle();
    while (Ready()) ASSERT_LT(++rounds, 1000);
  }

  const proto::ClusterView& view() const { return state_.view(); }
  const proto::Shard& shard(int index) const { return view().tables(0).shards(index); }
  // "2 3 4+": 4 joins.
  std::string Chain(int index) const {
    std::string text;
    for (const proto::Replica& replica : shard(index).chain()) {
      absl::StrAppend(&text, text.empty() ? "" : " ", replica.node(), replica.joining() ? "+" : "");
    }
    return text;
  }
  // Number of shards that each server holds, and of those that it heads.
  std::map<uint64_t, int> Held() const {
    std::map<uint64_t, int> held;
    for (const proto::Table& table : view().tables()) {
      for (const proto::Shard& shard : table.shards()) {
        for (const proto::Replica& replica : shard.chain()) ++held[replica.node()];
      }
    }
    return held;
  }
  std::map<uint64_t, int> Heads() const {
    std::map<uint64_t, int> heads;
    for (const proto::Table& table : view().tables()) {
      for (const proto::Shard& shard : table.shards()) ++heads[shard.chain(0).node()];
    }
    return heads;
  }

  const ChainsOptions options_;
  TestState state_;
  Tables tables_{state_};
  Chains chains_{options_, state_};
  absl::Time now_ = absl::UnixEpoch() + absl::Hours(1);
};

TEST_F(ChainsTest, NothingIsDueInAHealthyCluster) {
  AddServer(0);
  AddServer(1);
  Create("a", 8, 2);
  EXPECT_EQ(Settle(), "");
  EXPECT_EQ(chains_.NextReconcile(), absl::InfiniteFuture());
}

TEST_F(ChainsTest, DeathPromotesAndRepairsInOneEpoch) {
  AddServer(0);
  AddServer(1);
  AddServer(2);
  Create("a", 6, 2);
  for (int i = 0; i < 6; ++i) ASSERT_EQ(shard(i).chain_size(), 2);
  const proto::ClusterView before = view();
  Die(2);
  const std::string decision = Settle();
  EXPECT_THAT(decision, HasSubstr("promoted on server-"));
  EXPECT_THAT(decision, HasSubstr("joining on server-"));
  EXPECT_EQ(view().epoch(), before.epoch() + 1);
  for (int i = 0; i < 6; ++i) {
    const proto::Shard& was = before.tables(0).shards(i);
    const proto::Shard& is = shard(i);
    EXPECT_EQ(is.generation(), was.generation());
    const bool had = was.chain(0).node() == 2 || was.chain(1).node() == 2;
    EXPECT_EQ(is.chain_epoch(), had ? view().epoch() : was.chain_epoch());
    ASSERT_EQ(is.chain_size(), 2);
    EXPECT_FALSE(is.chain(0).joining());
    EXPECT_EQ(is.chain(1).joining(), had);
    if (!had) continue;
    EXPECT_EQ(is.chain(0).node(), was.chain(was.chain(0).node() == 2 ? 1 : 0).node());
  }
  ReadyUntilQuiet();
  EXPECT_THAT(Held(), ElementsAre(testing::Pair(3, 6), testing::Pair(4, 6)));
}

TEST_F(ChainsTest, AtMostFourJoinOnOneServerAndThoseInDangerComeFirst) {
  const uint64_t a = AddServer(0);
  const uint64_t b = AddServer(1);
  const uint64_t c = AddServer(2);
  Create("a", 9, 3);
  Die(c);
  Settle();
  EXPECT_THAT(Held(), ElementsAre(testing::Pair(a, 9), testing::Pair(b, 9)));
  // One shard has only one replica.
  for (const proto::Replica& replica : shard(8).chain()) {
    if (replica.node() != shard(8).chain(0).node()) {
      Report(shard(8).chain(0).node(), replica.node(), shard(8), proto::ReplicaReport::UNFIT);
    }
  }
  AddServer(2);
  Settle();
  int joining = 0;
  for (int i = 0; i < 9; ++i) joining += shard(i).chain().rbegin()->joining() ? 1 : 0;
  EXPECT_EQ(joining, 4);
  EXPECT_TRUE(shard(8).chain().rbegin()->joining());
  ReadyUntilQuiet();
  for (int i = 0; i < 9; ++i) EXPECT_EQ(shard(i).chain_size(), i == 8 ? 2 : 3) << i;
  now_ += absl::Seconds(2);
  ReadyUntilQuiet();
  EXPECT_EQ(shard(8).chain_size(), 3) << "the unfit one is filled again";
}

TEST_F(ChainsTest, OnlyFullReplicasAreHeads) {
  AddServer(0);
  const uint64_t b = AddServer(1);
  Create("a", 1, 2);
  Die(b);
  Settle();
  const uint64_t c = AddServer(1);
  Settle();
  ASSERT_EQ(Chain(0), "2 4+");
  Die(2);
  Settle();
  EXPECT_EQ(Chain(0), "2") << "content is lost; its replica was not full";
  EXPECT_EQ(shard(0).generation(), 1u);
  now_ += options_.replacement_wait;
  EXPECT_EQ(chains_.NextReconcile(), now_);
  EXPECT_THAT(Settle(), HasSubstr("1 lost with node 2, re-initialized on server-1"));
  EXPECT_EQ(Chain(0), absl::StrCat(c));
  EXPECT_EQ(shard(0).generation(), view().epoch());
}

TEST_F(ChainsTest, AnotherWaitHoldsForShardsThatWait) {
  AddServer(0);
  AddServer(1);
  Create("a", 2, 1);
  Die(2);
  Settle();
  now_ += absl::Seconds(4);
  EXPECT_EQ(Settle(), "");
  chains_.SetOptions({.replacement_wait = absl::Seconds(5)});
  EXPECT_LE(chains_.NextReconcile(), now_);
  EXPECT_EQ(Settle(), "");
  EXPECT_EQ(chains_.NextReconcile(), now_ + absl::Seconds(1));
  chains_.SetOptions({.replacement_wait = absl::Seconds(3)});
  EXPECT_THAT(Settle(), HasSubstr("1 lost with node 2, re-initialized on server-1"));
}

TEST_F(ChainsTest, ThePlantedBugPromotesWhoJoins) {
  AddServer(0);
  AddServer(1);
  Create("a", 1, 2);
  Die(shard(0).chain(1).node());
  AddServer(2);
  Settle();
  PlantBug(PlantedBug::kPromoteJoiningReplica);
  Die(2);
  Settle();
  EXPECT_EQ(Chain(0), "4");
  EXPECT_EQ(shard(0).generation(), 1u);
}

TEST_F(ChainsTest, AReplacementOfTheSameRankBeginsLostShardsAnew) {
  AddServer(0);
  AddServer(1);
  Create("a", 6, 1);
  Die(2);
  EXPECT_EQ(Settle(), "shards: 3 waiting for another server-0");
  const proto::ClusterView before = view();
  now_ += absl::Seconds(1);
  const uint64_t heir = AddServer(0);
  EXPECT_THAT(Settle(), HasSubstr("3 lost with node 2, re-initialized on server-0"));
  for (int i = 0; i < 6; ++i) {
    const proto::Shard& was = before.tables(0).shards(i);
    if (was.chain(0).node() == 2) {
      EXPECT_EQ(shard(i).chain(0).node(), heir);
      EXPECT_EQ(shard(i).chain(0).loop(), was.chain(0).loop());
      EXPECT_EQ(shard(i).generation(), view().epoch());
      EXPECT_EQ(shard(i).chain_epoch(), view().epoch());
    } else {
      EXPECT_EQ(shard(i).SerializeAsString(), was.SerializeAsString());
    }
  }
}

TEST_F(ChainsTest, LostShardsBeginWithTheNewestSnapshot) {
  AddServer(0);
  AddServer(1);
  Create("a", 2, 1);
  Create("b", 2, 1);
  {
    Transaction change(state_);
    proto::NewestSnapshot& newest = *change.EditUnpublished().mutable_newest_snapshot();
    newest.set_folder("snapshot-000001-e7");
    newest.add_tables(view().tables(0).id());
    change.Commit();
  }
  const auto origins = [this] {
    std::vector<std::string> found;
    for (const proto::Table& table : view().tables()) {
      for (const proto::Shard& shard : table.shards()) found.push_back(shard.origin());
    }
    return found;
  };
  Die(2);
  Settle();
  AddServer(0);
  EXPECT_THAT(Settle(), HasSubstr("1 lost with node 2, restored on server-0 from the newest"));
  EXPECT_THAT(origins(), ElementsAre("snapshot-000001-e7", "", "", "")) << "b is not in it";
  EXPECT_FALSE(chains_.must_stop());
  Chains begins_anew({.on_loss = OnLoss::kBeginAnew}, state_);
  Die(4);
  AddServer(0);
  begins_anew.Reconcile(now_);
  EXPECT_THAT(origins(), ElementsAre("", "", "", ""));
}

TEST_F(ChainsTest, AShardWithLostStepsNamesTheGroupsThatWereThere) {
  AddServer(0);
  Create("a", 1, 1);
  Create("b", 1, 1);
  for (const uint32_t id : {1, 2, 3}) {
    proto::Group& group = *state_.mutable_view()->add_groups();
    group.set_id(id);
    group.add_members(2);
    group.set_state(id == 2 ? proto::Group::DONE : proto::Group::ACTIVE);
  }
  {
    Transaction change(state_);
    proto::NewestSnapshot& newest = *change.EditUnpublished().mutable_newest_snapshot();
    newest.set_folder("snapshot-000001-e7");
    newest.add_tables(view().tables(0).id());
    proto::CutStep& last = *newest.add_groups();
    last.set_group(3);
    last.set_step(17);
    change.Commit();
  }
  const auto lost = [this](int table) {
    std::string groups;
    for (const proto::CutStep& last : view().tables(table).shards(0).groups_at_loss()) {
      absl::StrAppend(&groups, last.group(), "/", last.step(), " ");
    }
    return groups;
  };
  EXPECT_EQ(lost(0), "") << "a new shard has lost nothing";
  Die(2);
  Settle();
  AddServer(0);
  Settle();
  EXPECT_EQ(lost(0), "1/0 3/17 ");
  EXPECT_EQ(lost(1), "1/0 3/0 ") << "b is not in the snapshot";
}

TEST_F(ChainsTest, TheJobStopsWhereNoServerCanComeBackWithTheContent) {
  AddServer(0);
  AddServer(1);
  Create("a", 2, 1);
  const auto generations = [this] {
    return std::vector<uint64_t>{shard(0).generation(), shard(1).generation()};
  };
  const std::vector<uint64_t> before = generations();
  Chains stops({.on_loss = OnLoss::kStop}, state_);
  Die(3);
  state_.BeginCall();
  stops.Reconcile(now_);
  EXPECT_FALSE(stops.must_stop()) << "server-1 may come back";
  AddServer(1);
  state_.BeginCall();
  stops.Reconcile(now_);
  EXPECT_TRUE(stops.must_stop());
  EXPECT_EQ(generations(), before) << "nothing begins anew in a job that ends";
}

TEST_F(ChainsTest, TheJobStopsWhereAProgramGaveTheFirstValues) {
  AddServer(0);
  AddServer(1);
  Create("a", 2, 1);
  Create("b", 2, 1);
  for (proto::Table& table : *state_.mutable_view()->mutable_tables()) {
    table.mutable_spec()->mutable_initializer()->set_kind(proto::Initializer::GIVEN);
    table.mutable_initialization()->set_node(9);
    table.mutable_initialization()->set_epoch(1);
  }
  Die(3);
  Settle();
  AddServer(1);
  EXPECT_THAT(Settle(), HasSubstr("re-initialized")) << "the values can be given again";
  EXPECT_FALSE(chains_.must_stop());
  for (proto::Table& table : *state_.mutable_view()->mutable_tables()) {
    table.clear_initialization();
  }
  Die(2);
  Settle();
  AddServer(0);
  EXPECT_THAT(Settle(), HasSubstr("table 'a' shard 0 is lost for good"));
  EXPECT_TRUE(chains_.must_stop());
  EXPECT_EQ(Settle(), "") << "said once";
}

TEST_F(ChainsTest, ValuesThatWereLostBeforeTheTablesWereServedAreGivenAgain) {
  AddServer(0);
  AddServer(1);
  Create("a", 2, 1);
  Create("b", 2, 2);
  Create("c", 2, 2);
  for (int i = 0; i < 3; ++i) {
    proto::Table& table = *state_.mutable_view()->mutable_tables(i);
    table.mutable_spec()->mutable_initializer()->set_kind(proto::Initializer::GIVEN);
    table.mutable_initialization()->set_node(9);
    table.mutable_initialization()->set_call(i < 2 ? 4 : 5);
    table.mutable_initialization()->set_epoch(1);
  }
  proto::Group& group = *state_.mutable_view()->add_groups();
  group.set_id(1);
  group.add_members(2);
  group.set_state(proto::Group::ACTIVE);
  Die(3);
  Settle();
  EXPECT_TRUE(chains_.HasLostShard(view().tables(0)));
  EXPECT_FALSE(chains_.HasLostShard(view().tables(1)));
  AddServer(1);
  EXPECT_THAT(Settle(), HasSubstr("re-initialized"));
  EXPECT_FALSE(chains_.HasLostShard(view().tables(0)));
  EXPECT_EQ(view().tables(0).initialization().epoch(), shard(1).generation());
  EXPECT_EQ(view().tables(1).initialization().epoch(), shard(1).generation())
      << "all its shards survive, and its values come from the same call";
  EXPECT_EQ(view().tables(2).initialization().epoch(), 1u) << "of another call";
  EXPECT_EQ(shard(1).groups_at_loss_size(), 0) << "no step was lost";
  EXPECT_EQ(view().tables(1).initialization().node(), 9u);
}

TEST_F(ChainsTest, ACorruptShardWithGivenValuesEndsTheJobAsALostOneDoes) {
  AddServer(0);
  AddServer(1);
  Create("a", 2, 1);
  proto::Table& table = *state_.mutable_view()->mutable_tables(0);
  table.mutable_spec()->mutable_initializer()->set_kind(proto::Initializer::GIVEN);
  table.mutable_initialization()->set_epoch(1);
  const uint64_t holder = shard(0).chain(0).node();
  Report(holder, holder, shard(0), proto::ReplicaReport::UNFIT);
  EXPECT_TRUE(chains_.HasLostShard(view().tables(0)));
  EXPECT_THAT(Settle(), HasSubstr("re-initialized"));
  EXPECT_FALSE(chains_.must_stop());
  EXPECT_FALSE(chains_.HasLostShard(view().tables(0)));

  state_.mutable_view()->mutable_tables(0)->clear_initialization();
  now_ += absl::Seconds(2);  // the first server is usable again
  const uint64_t next = shard(0).chain(0).node();
  Report(next, next, shard(0), proto::ReplicaReport::UNFIT);
  Settle();
  EXPECT_TRUE(chains_.must_stop());
}

TEST_F(ChainsTest, GivenValuesThatASnapshotHoldsDoNotEndTheJob) {
  AddServer(0);
  AddServer(1);
  Create("a", 2, 1);
  state_.mutable_view()->mutable_tables(0)->mutable_spec()->mutable_initializer()->set_kind(
      proto::Initializer::GIVEN);
  proto::NewestSnapshot& newest = *state_.record().mutable_newest_snapshot();
  newest.set_folder("snapshot-000001-e2");
  newest.add_tables(view().tables(0).id());
  Die(3);
  Settle();
  AddServer(1);
  EXPECT_THAT(Settle(), HasSubstr("restored"));
  EXPECT_FALSE(chains_.must_stop());

  // Nor those with which the table began, if they came from a snapshot.
  state_.record().clear_newest_snapshot();
  state_.mutable_view()->mutable_tables(0)->mutable_origin()->set_folder("snapshot-000001-e2");
  Die(4);
  Settle();
  AddServer(1);
  EXPECT_THAT(Settle(), HasSubstr("re-initialized"));
  EXPECT_FALSE(chains_.must_stop());
}

TEST_F(ChainsTest, NothingIsLostThatWasNotServedYet) {
  AddServer(0);
  AddServer(1);
  Create("a", 2, 1);
  proto::Table& table = *state_.mutable_view()->mutable_tables(0);
  table.mutable_spec()->mutable_initializer()->set_kind(proto::Initializer::GIVEN);
  table.mutable_initialization()->set_epoch(1);
  Chains stops({.on_loss = OnLoss::kStop}, state_);
  Die(3);
  AddServer(1);
  state_.BeginCall();
  stops.Reconcile(now_);
  EXPECT_FALSE(stops.must_stop()) << "the values can be given again";
  EXPECT_NE(shard(1).chain(0).node(), 3u);
}

// The server may still serve them to clients that cannot reach the scheduler either.
TEST_F(ChainsTest, WhatAServerAloneHeldIsLostOnlyWhenItsLeaseHasEnded) {
  AddServer(0);
  AddServer(1);
  Create("a", 2, 1);
  Die(2);
  const absl::Time end = now_ + options_.replacement_wait + absl::Seconds(30);
  chains_.Fence(NodeId(2), end);
  EXPECT_EQ(Settle(), "shards: 1 waiting for the end of the lease of server-0");
  now_ += absl::Seconds(1);
  AddServer(0);
  EXPECT_EQ(Settle(), "");
  EXPECT_EQ(chains_.NextReconcile(), end);
  now_ = end - absl::Nanoseconds(1);
  state_.AffectPlacement();
  EXPECT_EQ(Settle(), "");
  now_ = end;
  EXPECT_THAT(Settle(), HasSubstr("1 lost with node 2, re-initialized on server-0"));
}

TEST_F(ChainsTest, LostShardsBeginAnewWithAllTheirReplicas) {
  AddServer(0);
  AddServer(1);
  AddServer(2);
  AddServer(3);
  Create("a", 4, 2);
  Die(2);
  Die(3);
  Settle();
  now_ += options_.replacement_wait;
  Settle();
  ReadyUntilQuiet();
  for (int i = 0; i < 4; ++i) EXPECT_EQ(shard(i).chain_size(), 2);
  EXPECT_THAT(Held(), ElementsAre(testing::Pair(4, 4), testing::Pair(5, 4)));
}

TEST_F(ChainsTest, ReadyCountsOnlyFromThoseBeforeItAndInThisLifeOfTheChain) {
  AddServer(0);
  AddServer(1);
  Create("a", 1, 2);
  const uint64_t c = AddServer(2);
  Die(3);
  Settle();
  ASSERT_EQ(Chain(0), "2 4+");
  const auto report = [&](uint64_t sender, const proto::Shard& as) {
    Report(sender, c, as, proto::ReplicaReport::READY);
    return Chain(0);
  };
  EXPECT_EQ(report(c, shard(0)), "2 4+") << "of itself";
  EXPECT_EQ(report(3, shard(0)), "2 4+") << "by a dead one";
  proto::Shard other = shard(0);
  other.set_chain_epoch(other.chain_epoch() - 1);
  EXPECT_EQ(report(2, other), "2 4+");
  other = shard(0);
  other.set_generation(77);
  EXPECT_EQ(report(2, other), "2 4+");
  other = shard(0);
  other.set_index(5);
  EXPECT_EQ(report(2, other), "2 4+");
  const uint64_t epoch = view().epoch();
  EXPECT_EQ(report(2, shard(0)), "2 4");
  EXPECT_EQ(shard(0).chain_epoch(), epoch + 1);
  chains_.Reconcile(now_);
  EXPECT_THAT(state_.News(), HasSubstr("1 full on server-2"));
}

TEST_F(ChainsTest, UnreachableReplicasAreLeftOutAndReplacedElsewhere) {
  AddServer(0);
  AddServer(1);
  AddServer(2);
  Create("a", 1, 2);
  ASSERT_EQ(Chain(0), "2 3");
  Report(3, 2, shard(0), proto::ReplicaReport::UNREACHABLE);
  EXPECT_EQ(Chain(0), "2 3") << "who comes after does not judge";
  proto::ClusterView before = view();
  Report(2, 3, shard(0), proto::ReplicaReport::UNREACHABLE);
  EXPECT_EQ(SettleSince(before), "shards: 1 joining on server-2, 1 unreachable on server-1");
  EXPECT_EQ(Chain(0), "2 4+");
  before = view();
  Report(2, 4, shard(0), proto::ReplicaReport::UNREACHABLE);
  SettleSince(before);
  EXPECT_EQ(Chain(0), "2") << "both are avoided for a while";
  now_ = chains_.NextReconcile();
  Settle();
  EXPECT_EQ(Chain(0), "2 3+");
}

TEST_F(ChainsTest, TheLastFullReplicaIsNeverOutForBeingUnreachable) {
  AddServer(0);
  AddServer(1);
  Create("a", 1, 2);
  Report(2, 2, shard(0), proto::ReplicaReport::UNFIT);
  EXPECT_EQ(Chain(0), "3") << "a head can be unfit, too";
  Report(3, 3, shard(0), proto::ReplicaReport::UNREACHABLE);
  EXPECT_EQ(Chain(0), "3");
}

TEST_F(ChainsTest, AShardWhoseOnlyFullReplicaIsUnfitBeginsAnewOnAnotherServer) {
  AddServer(0);
  AddServer(1);
  AddServer(2);
  Create("a", 1, 2);
  ASSERT_EQ(Chain(0), "2 3");
  Die(3);
  Settle();
  ASSERT_EQ(Chain(0), "2 4+");
  const proto::Shard before = shard(0);
  Report(2, 2, shard(0), proto::ReplicaReport::UNFIT);
  EXPECT_EQ(Chain(0), "2 4+") << "Settle decides";
  EXPECT_EQ(Settle(),
            "shards: 1 lost, their only copy on node 2 being unfit, re-initialized on server-2");
  EXPECT_EQ(Chain(0), "4") << "the one whose copy was wrong takes none for a moment";
  EXPECT_EQ(shard(0).generation(), view().epoch());
  EXPECT_EQ(shard(0).chain_epoch(), view().epoch());
  // A repeated report about a generation that no longer exists.
  Report(2, 2, before, proto::ReplicaReport::UNFIT);
  Settle();
  EXPECT_EQ(shard(0).generation(), view().epoch());
  now_ = chains_.NextReconcile();
  ReadyUntilQuiet();
  EXPECT_EQ(Chain(0), "4 2");
}

TEST_F(ChainsTest, AShardWhoseOnlyServerIsUnfitBeginsAnewThereAfterAMoment) {
  AddServer(0);
  Create("a", 2, 1);
  Report(2, 2, shard(1), proto::ReplicaReport::UNFIT);
  EXPECT_EQ(Settle(), "");
  EXPECT_EQ(shard(1).generation(), 1u);
  EXPECT_EQ(chains_.NextReconcile(), now_ + absl::Seconds(1));
  now_ = chains_.NextReconcile();
  EXPECT_THAT(Settle(), HasSubstr("being unfit, re-initialized on server-0"));
  EXPECT_EQ(Chain(1), "2");
  EXPECT_EQ(shard(1).generation(), view().epoch());
  EXPECT_EQ(shard(0).generation(), 1u);
}

TEST_F(ChainsTest, AnUnfitOnlyReplicaLeavesToTheOneThatBecomesFull) {
  AddServer(0);
  AddServer(1);
  Create("a", 1, 2);
  Die(shard(0).chain(1).node());
  AddServer(1);
  Settle();
  ASSERT_EQ(Chain(0), "2 4+");
  const proto::ClusterView before = view();
  const proto::Shard chain = shard(0);
  Report(2, 2, chain, proto::ReplicaReport::UNFIT);
  ReportInThisCall(2, 4, chain, proto::ReplicaReport::READY);
  SettleSince(before);
  EXPECT_EQ(Chain(0), "4");
  EXPECT_EQ(shard(0).generation(), 1u);
  now_ = chains_.NextReconcile();
  Settle();
  EXPECT_EQ(Chain(0), "4 2+");
}

TEST_F(ChainsTest, ADrainedServerHandsOverAndHoldsNothingInTheEnd) {
  for (const uint32_t replicas : {1u, 2u}) {
    SCOPED_TRACE(replicas);
    state_.mutable_view()->Clear();
    state_.record().set_next_table(1);
    state_.AffectPlacement();
    AddServer(0);
    AddServer(1);
    AddServer(2);
    Create("a", 12, replicas);
    Drain(2);
    Settle();
    int rounds = 0;
    do {
      for (int i = 0; i < 12; ++i) {
        const auto full =
            std::count_if(shard(i).chain().begin(), shard(i).chain().end(),
                          [](const proto::Replica& replica) { return !replica.joining(); });
        EXPECT_GE(full, replicas);
        EXPECT_EQ(shard(i).generation(), 1u);
      }
      ASSERT_LT(++rounds, 100);
    } while (Ready());
    EXPECT_THAT(Held(),
                ElementsAre(testing::Pair(3, 6 * replicas), testing::Pair(4, 6 * replicas)));
  }
}

TEST_F(ChainsTest, DrainingTheLastButOneShortensChainsAtOnce) {
  AddServer(0);
  AddServer(1);
  Create("a", 4, 2);
  Drain(2);
  EXPECT_THAT(Settle(), HasSubstr("4 moved away from server-0"));
  EXPECT_THAT(Held(), ElementsAre(testing::Pair(3, 4)));
  // The server stays.
  Drain(2, false);
  ReadyUntilQuiet();
  EXPECT_THAT(Held(), ElementsAre(testing::Pair(2, 4), testing::Pair(3, 4)));
}

TEST_F(ChainsTest, DrainingServersGoOnWhenNobodyElseIsLeft) {
  AddServer(0);
  AddServer(1);
  Create("a", 4, 2);
  Drain(2);
  Drain(3);
  Settle();
  EXPECT_THAT(Held(), ElementsAre(testing::Pair(2, 4), testing::Pair(3, 4)));
}

TEST_F(ChainsTest, TheLongestChainsMoveToo) {
  for (uint32_t rank = 0; rank < 6; ++rank) AddServer(rank);
  Create("a", 3, 5);
  ReadyUntilQuiet();
  Drain(2);
  ReadyUntilQuiet();
  EXPECT_EQ(Held().count(2), 0u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(shard(i).chain_size(), 5);
}

TEST_F(ChainsTest, ALateServerTakesItsShareOfOneCopyTables) {
  AddServer(0);
  Create("a", 12, 1);
  AddServer(1);
  AddServer(2);
  Settle();
  EXPECT_EQ(Held()[2], 12) << "until others are full";
  EXPECT_EQ(Held()[3] + Held()[4], 4) << "few at a time";
  ReadyUntilQuiet();
  EXPECT_THAT(Held(), ElementsAre(testing::Pair(2, 4), testing::Pair(3, 4), testing::Pair(4, 4)));
  for (int i = 0; i < 12; ++i) EXPECT_EQ(shard(i).generation(), 1u);
}

TEST_F(ChainsTest, LateServersTakeTheirShareOfHeadsToo) {
  AddServer(0);
  AddServer(1);
  Create("a", 16, 2);
  AddServer(2);
  AddServer(3);
  ReadyUntilQuiet();
  for (const auto& [node, count] : Held()) EXPECT_NEAR(count, 8, 1) << node;
  for (uint64_t node = 2; node <= 5; ++node) EXPECT_NEAR(Heads()[node], 4, 1) << node;
}

TEST_F(ChainsTest, TablesThatSaidNothingGrowTheirChainsWhenServersCome) {
  AddServer(0);
  Create("a", 6, 0);
  EXPECT_EQ(Held()[2], 6);
  AddServer(1);
  ReadyUntilQuiet();
  EXPECT_THAT(Held(), ElementsAre(testing::Pair(2, 6), testing::Pair(3, 6)));
}

TEST_F(ChainsTest, ARestartedPlannerGoesOnWithRepairsAndWithMovesThatHelp) {
  AddServer(0);
  AddServer(1);
  Create("a", 12, 1);
  AddServer(2);
  Settle();
  const proto::ClusterView before = view();
  Chains restarted(options_, state_);
  state_.BeginCall();
  restarted.Reconcile(now_);
  EXPECT_EQ(state_.News(), "");
  EXPECT_EQ(view().SerializeAsString(), before.SerializeAsString());
}

TEST_F(ChainsTest, ACancelledDrainEndsMovesThatHelpNobody) {
  AddServer(0);
  AddServer(1);
  AddServer(2);
  Create("a", 6, 1);
  Drain(2);
  Settle();
  Drain(2, false);
  EXPECT_THAT(Settle(), HasSubstr("1 not moved after all to server-1"));
  EXPECT_THAT(Held(), ElementsAre(testing::Pair(2, 2), testing::Pair(3, 2), testing::Pair(4, 2)));
}

TEST_F(ChainsTest, BalanceWaitsForRepair) {
  AddServer(0);
  AddServer(1);
  AddServer(2);
  Create("a", 8, 2);
  Die(2);
  AddServer(3);
  EXPECT_THAT(Settle(), testing::Not(HasSubstr("moving")));
}

}  // namespace
}  // namespace covey::scheduler

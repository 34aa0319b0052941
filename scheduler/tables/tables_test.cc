// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/tables.h"

#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/cluster/view.h"
#include "common/contract/contract.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class TablesTest : public ::testing::Test {
 protected:
  TablesTest() { state_.record().set_next_table(1); }

  void AddServer(uint64_t id, uint32_t rank, int loops) {
    proto::Node& node = *state_.mutable_view()->add_nodes();
    node.set_id(id);
    node.set_role(proto::SERVER);
    node.set_rank(rank);
    node.set_name("server-x");
    node.set_state(proto::Node::ALIVE);
    for (int i = 0; i <= loops; ++i) node.add_endpoints(i == 0 ? "" : "tcp://127.0.0.1:1");
  }
  static proto::TableSpec Spec(const std::string& name, uint64_t elements) {
    proto::TableSpec spec;
    spec.set_name(name);
    spec.set_data_type(proto::FLOAT32);
    spec.add_shape(elements);
    spec.set_shard_bytes(64);
    spec.mutable_learning_rate()->set_base(0.1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    return spec;
  }
  const proto::ClusterView& view() const { return state_.view(); }

  TestState state_;
  Tables tables_{state_};
};

TEST_F(TablesTest, SpreadsShardsAndMakesAValidView) {
  AddServer(2, 0, 2);
  AddServer(3, 1, 2);
  const auto creation = tables_.Create(Spec("a", 100));
  ASSERT_TRUE(creation.ok()) << creation.status();
  EXPECT_EQ(*creation, TableId(1));
  EXPECT_THAT(state_.News(), HasSubstr("'a' created"));
  EXPECT_EQ(view().epoch(), 1);
  ASSERT_EQ(view().tables(0).shards_size(), 7);
  EXPECT_EQ(view().tables(0).shards(0).generation(), 1);
  EXPECT_EQ(view().tables(0).shards(0).chain(0).node(), 2);
  EXPECT_EQ(view().tables(0).shards(1).chain(0).node(), 3);
  EXPECT_TRUE(ClusterView::Make(view()).ok());
}

// Servers that say how much their tables may take, and do take.
class TablesMemoryTest : public TablesTest {
 protected:
  static constexpr uint64_t kMib = 1 << 20;

  TablesMemoryTest() {
    AddServer(2, 0, 1);
    AddServer(3, 1, 1);
    for (const uint64_t id : {2, 3}) loads_[NodeId(id)].set_table_bytes_max(8 * kMib);
  }
  // Of so many MiB of values.
  static proto::TableSpec Large(const std::string& name, uint64_t mib) {
    proto::TableSpec spec = Spec(name, mib * kMib / sizeof(float));
    spec.set_shard_bytes(kMib);
    spec.set_durability(proto::MEMORY);
    return spec;
  }
  absl::Status Create(const proto::TableSpec& spec) { return limited_.Create(spec).status(); }

  std::map<NodeId, proto::ServerLoad> loads_;
  Tables limited_{state_, [this](NodeId server) { return &loads_[server]; }};
};

TEST_F(TablesMemoryTest, ATableForWhichNoServerHasMemoryIsRefused) {
  const absl::Status refused = Create(Large("huge", 17));
  EXPECT_EQ(refused.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("'huge': its values and optimizer state need 17825792 "
                                           "bytes in all replicas, and the tables of the servers "
                                           "may take 16777216 more"));
  EXPECT_EQ(view().tables_size(), 0);
  EXPECT_TRUE(Create(Large("whole", 16)).ok());
  EXPECT_EQ(Create(Large("one-more", 1)).code(), absl::StatusCode::kResourceExhausted)
      << "before a heartbeat tells of the other one";
  EXPECT_TRUE(limited_.Create(Large("whole", 16)).ok()) << "it exists";
}

TEST_F(TablesMemoryTest, ReplicasAndOptimizerStateCount) {
  proto::TableSpec spec = Large("a", 6);
  spec.clear_durability();
  spec.set_replicas(2);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
  EXPECT_EQ(Create(spec).code(), absl::StatusCode::kResourceExhausted);
  spec.clear_replicas();
  spec.set_durability(proto::MEMORY);
  EXPECT_TRUE(Create(spec).ok());
  // Four replicas on two servers are two.
  proto::TableSpec replicated = Large("b", 2);
  replicated.clear_durability();
  replicated.set_replicas(4);
  EXPECT_TRUE(Create(replicated).ok());
}

TEST_F(TablesMemoryTest, WhatServersTakeAlreadyCounts) {
  loads_[NodeId(2)].set_table_bytes(5 * kMib);
  loads_[NodeId(3)].set_table_bytes(9 * kMib);
  EXPECT_EQ(Create(Large("a", 4)).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(Create(Large("a", 3)).ok());
}

TEST_F(TablesMemoryTest, NothingIsRefusedWhileAServerDoesNotSay) {
  loads_[NodeId(3)].clear_table_bytes_max();
  EXPECT_TRUE(Create(Large("a", 100)).ok());
}

TEST_F(TablesTest, InitialValuesGoToTablesOfTheirNameAndLength) {
  AddServer(2, 0, 1);
  proto::InitialValues& values = *state_.record().mutable_initial_values();
  values.set_folder("import-gpt2");
  (*values.mutable_tables())["a"] = 100;
  (*values.mutable_tables())["b"] = 100;
  ASSERT_TRUE(tables_.Create(Spec("a", 100)).ok());
  EXPECT_EQ(view().tables(0).origin().folder(), "import-gpt2");
  EXPECT_EQ(view().tables(0).origin().table(), "a");
  EXPECT_EQ(view().tables(0).origin().takes(), proto::TableOrigin::VALUES);
  EXPECT_THAT(state_.News(), HasSubstr("with the values of import-gpt2"));
  const absl::Status refused = tables_.Create(Spec("b", 101)).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("'b': it has 101 elements, but its initial values in "
                                           "import-gpt2 have 100"));
  ASSERT_TRUE(tables_.Create(Spec("c", 101)).ok());
  ASSERT_EQ(view().tables_size(), 2);
  EXPECT_FALSE(view().tables(1).has_origin());
}

TEST_F(TablesTest, HeadsOfSmallTablesAreOnDifferentServers) {
  AddServer(2, 0, 1);
  AddServer(3, 1, 1);
  std::map<uint64_t, int> heads;
  for (int i = 0; i < 6; ++i) {
    proto::TableSpec spec = Spec(absl::StrCat("t", i), 16);
    spec.set_replicas(2);
    ASSERT_TRUE(tables_.Create(spec).ok());
    ASSERT_EQ(view().tables(i).shards(0).chain_size(), 2);
    ++heads[view().tables(i).shards(0).chain(0).node()];
  }
  EXPECT_EQ(heads[2], 3);
  EXPECT_EQ(heads[3], 3);
}

TEST_F(TablesTest, TablesWhoseOptimizerTakesNormsAreCutAsLittleAsPossible) {
  AddServer(2, 0, 2);
  proto::TableSpec spec = Spec("a", (4 << 20) - 1);  // just below 16 MiB
  spec.clear_shard_bytes();
  ASSERT_TRUE(tables_.Create(spec).ok());
  EXPECT_GT(view().tables(0).shards_size(), 8);
  spec.set_name("b");
  spec.mutable_optimizer()->set_kind(proto::Optimizer::LAMB);
  ASSERT_TRUE(tables_.Create(spec).ok());
  EXPECT_EQ(view().tables(1).shards_size(), 1);
}

TEST_F(TablesTest, CreationIsIdempotentByEqualSpecOnly) {
  AddServer(2, 0, 1);
  ASSERT_TRUE(tables_.Create(Spec("a", 100)).ok());
  state_.News();
  const auto again = tables_.Create(Spec("a", 100));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(*again, TableId(1));
  EXPECT_EQ(state_.News(), "");
  EXPECT_EQ(view().epoch(), 1);
  EXPECT_TRUE(absl::IsAlreadyExists(tables_.Create(Spec("a", 101)).status()));
}

// Of its optimizer, on top of what asynchrony adds.
TEST_F(TablesTest, MomentumUnderAsynchronyIsAnEventOfItsOwn) {
  AddServer(2, 0, 2);
  constexpr char kWarning[] =
      "table 'w' has a momentum of 0.9 under ssp:2, to which asynchrony adds about 1 - 1/G with G "
      "groups, so that training may diverge: set asynchrony.automatic_momentum of the table, or "
      "lower its momentum";
  proto::TableSpec spec = Spec("w", 100);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::NESTEROV);
  spec.mutable_optimizer()->set_momentum(0.9);
  spec.mutable_contract()->set_kind(proto::Contract::SSP);
  spec.mutable_contract()->set_staleness(2);
  ASSERT_TRUE(tables_.Create(spec).ok());
  EXPECT_THAT(state_.News(), HasSubstr(kWarning));
  ASSERT_TRUE(tables_.Create(spec).ok());
  EXPECT_EQ(state_.News(), "") << "the same table again";

  spec.set_name("tamed");
  spec.mutable_asynchrony()->set_automatic_momentum(true);
  ASSERT_TRUE(tables_.Create(spec).ok());
  EXPECT_THAT(state_.News(), Not(HasSubstr("momentum")));
  spec.clear_asynchrony();
  spec.set_name("plain");
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_optimizer()->clear_momentum();
  ASSERT_TRUE(tables_.Create(spec).ok());
  EXPECT_THAT(state_.News(), Not(HasSubstr("momentum")));

  spec = Spec("later", 100);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
  spec.mutable_optimizer()->set_momentum(0.5);
  spec.mutable_contract()->set_kind(proto::Contract::BUFFERED);
  ASSERT_TRUE(tables_.Create(spec).ok());
  EXPECT_THAT(state_.News(), Not(HasSubstr("momentum")));
  proto::Contract async;
  async.set_kind(proto::Contract::ASYNC);
  ASSERT_TRUE(tables_.SetContract("later", async, "asked by a test").ok());
  EXPECT_THAT(state_.News(), HasSubstr("a momentum of 0.5 under async"));
}

TEST_F(TablesTest, WithoutServersUnavailable) {
  EXPECT_TRUE(absl::IsUnavailable(tables_.Create(Spec("a", 100)).status()));
}

TEST_F(TablesTest, TooManyShardsAreRefused) {
  AddServer(2, 0, 1);
  const absl::Status status = tables_.Create(Spec("a", uint64_t{16} * 200000)).status();
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_EQ(view().tables_size(), 0);
}

TEST_F(TablesTest, DropAndItsIdIsNotReused) {
  AddServer(2, 0, 1);
  ASSERT_TRUE(tables_.Create(Spec("a", 100)).ok());
  EXPECT_TRUE(tables_.Drop("a").ok());
  EXPECT_EQ(view().epoch(), 2);
  EXPECT_TRUE(absl::IsNotFound(tables_.Drop("a")));
  EXPECT_EQ(*tables_.Create(Spec("a", 100)), TableId(2));
}

TEST_F(TablesTest, ReplicasAreSpreadOverOtherServersFromTheBeginning) {
  for (uint32_t rank = 0; rank < 3; ++rank) AddServer(2 + rank, rank, 2);
  proto::TableSpec spec = Spec("a", 16 * 12);
  spec.set_replicas(3);
  ASSERT_TRUE(tables_.Create(spec).ok());
  spec = Spec("b", 16 * 12);
  ASSERT_TRUE(tables_.Create(spec).ok());
  spec = Spec("c", 16 * 12);
  spec.set_durability(proto::MEMORY);
  ASSERT_TRUE(tables_.Create(spec).ok());
  const auto checked = ClusterView::Make(view());
  ASSERT_TRUE(checked.ok()) << checked.status();
  const int lengths[] = {3, 2, 1};
  std::map<uint64_t, int> held;
  std::map<uint64_t, int> heads;
  for (const proto::Table& table : view().tables()) {
    for (const proto::Shard& shard : table.shards()) {
      ASSERT_EQ(shard.chain_size(), lengths[table.id() - 1]);
      EXPECT_EQ(shard.chain_epoch(), table.id());
      ++heads[shard.chain(0).node()];
      for (const proto::Replica& replica : shard.chain()) {
        EXPECT_FALSE(replica.joining());
        ++held[replica.node()];
      }
    }
  }
  for (uint64_t node = 2; node < 5; ++node) {
    EXPECT_EQ(held[node], 12 * 6 / 3) << node;
    EXPECT_EQ(heads[node], 12) << node;
  }
}

TEST_F(TablesTest, FewerServersThanReplicas) {
  AddServer(2, 0, 1);
  ASSERT_TRUE(tables_.Create(Spec("a", 16)).ok()) << "not said: replicated later";
  proto::TableSpec spec = Spec("b", 16);
  spec.set_durability(proto::REPLICATED);
  const absl::Status status = tables_.Create(spec).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_THAT(std::string(status.message()), HasSubstr("REPLICATED on 2 servers"));
  EXPECT_THAT(std::string(status.message()), HasSubstr("there are 1: start 1 more"));
  AddServer(3, 1, 1);
  EXPECT_TRUE(tables_.Create(spec).ok());
}

TEST_F(TablesTest, TablesOfAReplicatedJobHaveTwoReplicas) {
  state_.job().durability = JobDurability::Parse("replicated").value();
  AddServer(2, 0, 1);
  proto::TableSpec spec = Spec("a", 16);
  const absl::Status few = tables_.Create(spec).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(few)) << few;
  AddServer(3, 1, 1);
  EXPECT_TRUE(tables_.Create(spec).ok());
  spec = Spec("b", 16);
  spec.set_durability(proto::MEMORY);
  const absl::Status one = tables_.Create(spec).status();
  EXPECT_TRUE(absl::IsInvalidArgument(one)) << one;
  EXPECT_THAT(std::string(one.message()), HasSubstr("table 'b' asks for one replica"));
}

TEST_F(TablesTest, ReplicasGoToOtherHostsAndRacksWhereLabelsTell) {
  const char* const labels[] = {"z/r0/h0", "z/r0/h0", "z/r0/h1", "z/r1/h2"};
  for (uint32_t rank = 0; rank < 4; ++rank) {
    AddServer(2 + rank, rank, 1);
    state_.mutable_view()->mutable_nodes(rank)->set_labels(labels[rank]);
  }
  ASSERT_TRUE(tables_.Create(Spec("a", 16 * 8)).ok());
  proto::TableSpec spec = Spec("b", 16 * 8);
  spec.set_replicas(3);
  ASSERT_TRUE(tables_.Create(spec).ok());
  const auto host = [](uint64_t node) { return node <= 3 ? 0 : node; };
  const auto rack = [](uint64_t node) { return node <= 4 ? 0 : 1; };
  for (const proto::Table& table : view().tables()) {
    for (const proto::Shard& shard : table.shards()) {
      EXPECT_NE(host(shard.chain(0).node()), host(shard.chain(1).node()));
      EXPECT_NE(rack(shard.chain(0).node()), rack(shard.chain(1).node()));
    }
  }
  for (const proto::Shard& shard : view().tables(1).shards()) {
    EXPECT_NE(host(shard.chain(0).node()), host(shard.chain(2).node()));
    EXPECT_NE(host(shard.chain(1).node()), host(shard.chain(2).node()));
  }
}

class SetContractTest : public TablesTest {
 protected:
  SetContractTest() {
    AddServer(2, 0, 1);
    EXPECT_TRUE(tables_.Create(Spec("a", 10)).ok());
    state_.News();
  }
  absl::StatusOr<Epoch> Set(const std::string& contract) {
    return tables_.SetContract("a", ContractToProto(*ParseContract(contract)), "asked by a test");
  }
};

TEST_F(SetContractTest, PutsAnotherContractInForce) {
  const proto::Table before = view().tables(0);
  const auto change = Set("buffered:4,cut=8");
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(*change, Epoch(2));
  EXPECT_EQ(state_.News(), "table 'a' (1) goes from async to buffered:4,cut=8: asked by a test");
  const proto::Table& after = view().tables(0);
  EXPECT_EQ(after.contract_epoch(), 2u);
  EXPECT_EQ(ContractName(*ContractInForce(after)), "buffered:4,cut=8");
  EXPECT_EQ(after.spec().SerializeAsString(), before.spec().SerializeAsString());
  EXPECT_EQ(after.shards(0).generation(), before.shards(0).generation());
}

TEST_F(SetContractTest, AgainChangesNothing) {
  ASSERT_TRUE(Set("async").ok());
  EXPECT_EQ(state_.News(), "");
  EXPECT_EQ(view().epoch(), 1u);
  ASSERT_TRUE(Set("ssp:2").ok());
  state_.News();
  ASSERT_TRUE(Set("ssp:2").ok());
  EXPECT_EQ(state_.News(), "");
  EXPECT_EQ(*Set("ssp:2"), Epoch(2));
  EXPECT_EQ(view().epoch(), 2u);
  // And back again.
  EXPECT_EQ(*Set("async"), Epoch(3));
}

TEST_F(SetContractTest, TheTableIsStillTheOneOfItsSpec) {
  ASSERT_TRUE(Set("ssp:2").ok());
  state_.News();
  const auto again = tables_.Create(Spec("a", 10));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, TableId(1));
  EXPECT_EQ(state_.News(), "");
  proto::TableSpec other = Spec("a", 10);
  *other.mutable_contract() = ContractToProto(*ParseContract("ssp:2"));
  EXPECT_EQ(tables_.Create(other).status().code(), absl::StatusCode::kAlreadyExists);
}

TEST_F(SetContractTest, RefusesWhatThisTableCannotDo) {
  EXPECT_EQ(tables_.SetContract("b", ContractToProto({}), "").status().code(),
            absl::StatusCode::kNotFound);
  proto::Contract unknown;
  unknown.set_kind(static_cast<proto::Contract::Kind>(77));
  EXPECT_EQ(tables_.SetContract("a", unknown, "").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Set("local:8").status().message(), HasSubstr("cannot go from async to local:8"));
  EXPECT_THAT(Set("bsp").status().message(), HasSubstr("no group is active"));
  EXPECT_EQ(Set("bsp").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(view().epoch(), 1u);
  proto::Group& group = *state_.mutable_view()->add_groups();
  group.set_id(1);
  group.set_state(proto::Group::ACTIVE);
  EXPECT_TRUE(Set("bsp").ok());
}

}  // namespace
}  // namespace covey::scheduler

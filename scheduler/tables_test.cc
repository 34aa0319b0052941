#include "scheduler/tables.h"

#include <string>

#include "common/cluster/contract.h"
#include "common/cluster/view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;

class TablesTest : public ::testing::Test {
 protected:
  TablesTest() { state_.set_next_table(1); }

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

  proto::LogRecord state_;
  Tables tables_{state_};
};

TEST_F(TablesTest, SpreadsShardsAndMakesAValidView) {
  AddServer(2, 0, 2);
  AddServer(3, 1, 2);
  const auto creation = tables_.Create(Spec("a", 100));
  ASSERT_TRUE(creation.ok()) << creation.status();
  EXPECT_EQ(creation->table, TableId(1));
  EXPECT_THAT(creation->decision, HasSubstr("'a' created"));
  EXPECT_EQ(view().epoch(), 1);
  ASSERT_EQ(view().tables(0).shards_size(), 7);
  EXPECT_EQ(view().tables(0).shards(0).generation(), 1);
  EXPECT_EQ(view().tables(0).shards(0).chain(0).node(), 2);
  EXPECT_EQ(view().tables(0).shards(1).chain(0).node(), 3);
  EXPECT_TRUE(ClusterView::Make(view()).ok());
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
  const auto again = tables_.Create(Spec("a", 100));
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->table, TableId(1));
  EXPECT_EQ(again->decision, "");
  EXPECT_EQ(view().epoch(), 1);
  EXPECT_TRUE(absl::IsAlreadyExists(tables_.Create(Spec("a", 101)).status()));
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
  EXPECT_TRUE(absl::IsNotFound(tables_.Drop("a").status()));
  EXPECT_EQ(tables_.Create(Spec("a", 100))->table, TableId(2));
}

TEST_F(TablesTest, HeirStartsLostShardsAnew) {
  AddServer(2, 0, 3);
  AddServer(3, 1, 3);
  ASSERT_TRUE(tables_.Create(Spec("a", 16 * 6)).ok());
  AddServer(4, 0, 2);
  state_.mutable_view()->set_epoch(9);
  EXPECT_THAT(tables_.Rehome(NodeId(2), NodeId(4)), HasSubstr("3 shards lost with node 2"));
  int moved = 0;
  for (const proto::Shard& shard : view().tables(0).shards()) {
    ASSERT_NE(shard.chain(0).node(), 2);
    if (shard.chain(0).node() == 3) {
      EXPECT_EQ(shard.generation(), 1);
    } else {
      EXPECT_EQ(shard.generation(), 9);
      EXPECT_GE(shard.chain(0).loop(), 1);
      EXPECT_LE(shard.chain(0).loop(), 2);
      ++moved;
    }
  }
  EXPECT_EQ(moved, 3);
  EXPECT_EQ(tables_.Rehome(NodeId(2), NodeId(4)), "");
}

class SetContractTest : public TablesTest {
 protected:
  SetContractTest() {
    AddServer(2, 0, 1);
    EXPECT_TRUE(tables_.Create(Spec("a", 10)).ok());
  }
  absl::StatusOr<Tables::Switch> Set(const std::string& contract) {
    return tables_.SetContract("a", ContractToProto(*ParseContract(contract)), "asked by a test");
  }
};

TEST_F(SetContractTest, PutsAnotherContractInForce) {
  const proto::Table before = view().tables(0);
  const auto change = Set("buffered:4,cut=8");
  ASSERT_TRUE(change.ok()) << change.status();
  EXPECT_EQ(change->epoch, Epoch(2));
  EXPECT_EQ(change->decision, "table 'a' (1) goes from async to buffered:4,cut=8: asked by a test");
  const proto::Table& after = view().tables(0);
  EXPECT_EQ(after.contract_epoch(), 2u);
  EXPECT_EQ(ContractName(*ContractInForce(after)), "buffered:4,cut=8");
  EXPECT_EQ(after.spec().SerializeAsString(), before.spec().SerializeAsString());
  EXPECT_EQ(after.shards(0).generation(), before.shards(0).generation());
}

TEST_F(SetContractTest, AgainChangesNothing) {
  EXPECT_EQ(Set("async")->decision, "");
  EXPECT_EQ(view().epoch(), 1u);
  ASSERT_TRUE(Set("ssp:2").ok());
  EXPECT_EQ(Set("ssp:2")->decision, "");
  EXPECT_EQ(Set("ssp:2")->epoch, Epoch(2));
  EXPECT_EQ(view().epoch(), 2u);
  // And back again.
  EXPECT_EQ(Set("async")->epoch, Epoch(3));
}

TEST_F(SetContractTest, TheTableIsStillTheOneOfItsSpec) {
  ASSERT_TRUE(Set("ssp:2").ok());
  const auto again = tables_.Create(Spec("a", 10));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->table, TableId(1));
  EXPECT_EQ(again->decision, "");
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

// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/initializations.h"

#include <string>
#include <vector>

#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/placement/chains.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/tables/tables.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr NodeId kFirst{5};
constexpr NodeId kSecond{6};
constexpr NodeId kServer{2};
constexpr uint64_t kCall = 3;

class InitializationsTest : public ::testing::Test {
 protected:
  InitializationsTest() {
    state_.record().set_next_table(1);
    AddNode(kServer.value(), proto::SERVER, "server-0");
    AddNode(kFirst.value(), proto::WORKER, "worker-0");
    AddNode(kSecond.value(), proto::WORKER, "worker-1");
    Create("weights", proto::Initializer::GIVEN);
    Create("bias", proto::Initializer::GIVEN);
    Create("zeros", proto::Initializer::ZEROS);
  }

  void AddNode(uint64_t id, proto::Role role, const std::string& name) {
    proto::Node& node = *state_.mutable_view()->add_nodes();
    node.set_id(id);
    node.set_role(role);
    node.set_name(name);
    node.set_state(proto::Node::ALIVE);
    for (int i = 0; i < 2; ++i) node.add_endpoints("tcp://127.0.0.1:1");
  }
  void Create(const std::string& name, proto::Initializer::Kind kind) {
    proto::TableSpec spec;
    spec.set_name(name);
    spec.set_data_type(proto::FLOAT32);
    spec.add_shape(10);
    spec.mutable_initializer()->set_kind(kind);
    spec.mutable_learning_rate()->set_base(0.1);
    spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
    ASSERT_TRUE(tables_.Create(spec).ok());
  }
  void Kill(NodeId node) {
    for (proto::Node& other : *state_.mutable_view()->mutable_nodes()) {
      if (other.id() == node.value()) other.set_state(proto::Node::DEAD);
    }
  }
  absl::StatusOr<Epoch> Ask(NodeId node, Epoch held = Epoch(),
                            const std::vector<std::string>& names = {"weights", "bias"}) {
    return AskAs(node, kCall, held, names);
  }
  absl::StatusOr<Epoch> AskAs(NodeId node, uint64_t call, Epoch held = Epoch(),
                              const std::vector<std::string>& names = {"weights", "bias"}) {
    proto::InitializeTablesRequest request;
    for (const std::string& name : names) request.add_names(name);
    request.set_held_epoch(held.value());
    request.set_call(call);
    return initializations_.OnRequest(node, request);
  }
  void GiveUp(NodeId node, uint64_t call) {
    proto::InitializeTablesRequest request;
    request.set_call(call);
    request.set_gives_up(true);
    EXPECT_EQ(*initializations_.OnRequest(node, request), Epoch());
  }
  const proto::Table& table(int index) const { return state_.view().tables(index); }

  TestState state_;
  Tables tables_{state_};
  Chains chains_{{}, state_};
  Initializations initializations_{state_, chains_};
};

TEST_F(InitializationsTest, OneNodeGivesTheValuesOfAllTables) {
  EXPECT_TRUE(table(0).has_initialization());
  EXPECT_FALSE(table(2).has_initialization());
  const auto epoch = Ask(kFirst);
  ASSERT_TRUE(epoch.ok()) << epoch.status();
  EXPECT_THAT(state_.News(),
              HasSubstr("tables 'weights', 'bias' take their initial values from worker-0"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(table(i).initialization().node(), kFirst.value());
    EXPECT_EQ(table(i).initialization().epoch(), epoch->value());
  }
  EXPECT_EQ(*Ask(kFirst), *epoch) << "a repeated request changes nothing";
  EXPECT_EQ(state_.epoch(), *epoch);
  const absl::Status refused = Ask(kSecond, Epoch(), {"bias"}).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("table 'bias': worker-0 gives its initial values"));

  EXPECT_EQ(*Ask(kFirst, *epoch), Epoch());
  EXPECT_THAT(state_.News(), HasSubstr("have their initial values, from worker-0"));
  EXPECT_FALSE(table(0).has_initialization());
  EXPECT_FALSE(table(1).has_initialization());
  EXPECT_EQ(*Ask(kSecond), Epoch());
  EXPECT_EQ(*Ask(kFirst, *epoch), Epoch()) << "repeated";
}

TEST_F(InitializationsTest, AnotherNodeGivesThemWhenTheFirstIsGone) {
  const Epoch first = *Ask(kFirst);
  Kill(kFirst);
  const auto second = Ask(kSecond, first);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GT(*second, first) << "what the dead node's shards hold ends nothing";
  EXPECT_EQ(table(1).initialization().node(), kSecond.value());
  EXPECT_EQ(*Ask(kSecond, first), *second) << "values under another epoch do not count";
  EXPECT_TRUE(table(0).has_initialization());
  EXPECT_EQ(*Ask(kSecond, *second), Epoch());
}

TEST_F(InitializationsTest, AnotherCallOfTheSameNodeWaits) {
  const Epoch first = *Ask(kFirst);
  const absl::Status refused = AskAs(kFirst, kCall + 1).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("another call of this process, worker-0 gives"));
  EXPECT_EQ(AskAs(kFirst, kCall + 1, first).status().code(), Code::kUnavailable)
      << "what another call holds ends nothing";
  EXPECT_TRUE(table(0).has_initialization());

  GiveUp(kFirst, kCall + 1);
  GiveUp(kSecond, kCall);
  EXPECT_EQ(*Ask(kFirst), first) << "the call that gives has not given up";
  state_.News();
  GiveUp(kFirst, kCall);
  EXPECT_EQ(state_.News(),
            "worker-0 no longer gives the initial values of tables 'weights', 'bias'");
  EXPECT_EQ(table(0).initialization().node(), 0u);
  GiveUp(kFirst, kCall);
  EXPECT_EQ(state_.News(), "") << "repeated";

  const Epoch second = *AskAs(kFirst, kCall + 1);
  EXPECT_GT(second, first) << "servers refuse what is still on its way from the first call";
  EXPECT_EQ(*AskAs(kFirst, kCall + 1, first), second);
  EXPECT_EQ(*AskAs(kFirst, kCall + 1, second), Epoch());
}

TEST_F(InitializationsTest, AnotherNodeGivesThemWhenTheFirstGivesUp) {
  const Epoch first = *Ask(kFirst);
  GiveUp(kFirst, kCall);
  EXPECT_GT(*Ask(kSecond), first);
}

TEST_F(InitializationsTest, ATableThatIsCreatedAnewDuringTheCallGetsTheEpochOfAll) {
  const Epoch first = *Ask(kFirst);
  ASSERT_TRUE(tables_.Drop("bias").ok());
  Create("bias", proto::Initializer::GIVEN);
  const Epoch both = *Ask(kFirst, first);
  EXPECT_GT(both, first);
  EXPECT_EQ(table(0).initialization().epoch(), both.value());
  EXPECT_EQ(table(2).initialization().epoch(), both.value());
  EXPECT_EQ(*Ask(kFirst, first), both);
  EXPECT_EQ(*Ask(kFirst, both), Epoch());
}

TEST_F(InitializationsTest, ALostShardHoldsNothing) {
  const Epoch epoch = *Ask(kFirst);
  Kill(kServer);
  const absl::Status refused = Ask(kFirst, epoch).status();
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_THAT(refused.message(), HasSubstr("no server has one of its shards any more"));
  EXPECT_TRUE(table(0).has_initialization());
}

TEST_F(InitializationsTest, RefusesWhatNoClientAsks) {
  EXPECT_EQ(AskAs(kFirst, 0).status().code(), Code::kInvalidArgument);
  const std::vector<std::string> names(kTablesMax + 1, "bias");
  EXPECT_EQ(Ask(kFirst, Epoch(), names).status().code(), Code::kInvalidArgument);
  EXPECT_TRUE(Ask(kFirst, Epoch(), {"bias", "bias"}).ok());
}

TEST_F(InitializationsTest, RefusesOtherTables) {
  EXPECT_EQ(Ask(kFirst, Epoch(), {"weights", "none"}).status().code(), Code::kNotFound);
  const absl::Status other = Ask(kFirst, Epoch(), {"weights", "zeros"}).status();
  EXPECT_EQ(other.code(), Code::kFailedPrecondition);
  EXPECT_THAT(other.message(), HasSubstr("'zeros': its initializer is ZEROS"));
  EXPECT_EQ(table(0).initialization().node(), 0u) << "nothing was changed";
}

}  // namespace
}  // namespace covey::scheduler

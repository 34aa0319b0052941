// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/initializations.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"
#include "scheduler/tables/tables.h"

namespace covey::scheduler {
namespace {

using ::testing::HasSubstr;
using Code = absl::StatusCode;

constexpr NodeId kFirst{5};
constexpr NodeId kSecond{6};

class InitializationsTest : public ::testing::Test {
 protected:
  InitializationsTest() {
    state_.record().set_next_table(1);
    AddNode(2, proto::SERVER, "server-0");
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
    proto::InitializeTablesRequest request;
    for (const std::string& name : names) request.add_names(name);
    request.set_held_epoch(held.value());
    return initializations_.OnRequest(node, request);
  }
  const proto::Table& table(int index) const { return state_.view().tables(index); }

  TestState state_;
  Tables tables_{state_};
  Initializations initializations_{state_};
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
  const auto second = Ask(kSecond);
  ASSERT_TRUE(second.ok()) << second.status();
  EXPECT_GT(*second, first);
  EXPECT_EQ(table(1).initialization().node(), kSecond.value());
  EXPECT_EQ(*Ask(kSecond, first), *second) << "values under another epoch do not count";
  EXPECT_TRUE(table(0).has_initialization());
  EXPECT_EQ(*Ask(kSecond, *second), Epoch());
}

TEST_F(InitializationsTest, ANodeThatGivesSomeOfTheTablesGivesThoseOfAll) {
  const Epoch first = *Ask(kFirst, Epoch(), {"bias"});
  const Epoch both = *Ask(kFirst);
  EXPECT_GT(both, first);
  EXPECT_EQ(table(0).initialization().epoch(), both.value());
  EXPECT_EQ(table(1).initialization().epoch(), both.value());
  EXPECT_EQ(*Ask(kFirst, first), both);
  EXPECT_EQ(*Ask(kFirst, both), Epoch());
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

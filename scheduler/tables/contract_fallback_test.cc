// SPDX-License-Identifier: Apache-2.0
#include "scheduler/tables/contract_fallback.h"

#include <optional>
#include <utility>

#include <utility>

#include "common/contract/contract.h"
#include "common/contract/momentum_governor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "scheduler/state/cluster_state_fixture.h"

namespace covey::scheduler {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Table 1 on servers 2 and 3, applied on arrival, with a momentum of 0.9.
class ContractFallbackTest : public ::testing::Test {
 protected:
  ContractFallbackTest() {
    proto::Table& table = *state_.mutable_view()->add_tables();
    table.set_id(1);
    table.mutable_spec()->set_name("t");
    table.mutable_spec()->mutable_contract()->set_kind(proto::Contract::ASYNC);
    for (uint64_t server : {2, 3}) table.add_shards()->add_chain()->set_node(server);
  }

  std::vector<std::string> Hear(uint64_t server, uint64_t updates_above, uint32_t table = 1) {
    proto::ServerLoad load;
    proto::TableAsynchrony& report = *load.add_tables();
    report.set_table(table);
    report.set_updates(5000);
    report.set_staleness(15);
    report.set_implicit_momentum(ImplicitMomentum(15));
    report.set_target_momentum(0.9);
    report.set_updates_above_target(updates_above);
    fallback_->OnHeartbeat(NodeId(server), load);
    return state_.TakeTexts();
  }
  std::string ContractOfTable() const {
    return ContractName(*ContractInForce(state_.view().tables(0)));
  }

  const uint64_t max_ = MomentumGovernor::kUpdatesAboveTargetMax;
  TestState state_;
  Tables tables_{state_};
  std::optional<ContractFallback> fallback_{std::in_place, ContractFallback::Options(), state_,
                                            tables_};
};

TEST_F(ContractFallbackTest, ATableThatCannotBeHeldBecomesBuffered) {
  EXPECT_THAT(Hear(2, max_), IsEmpty()) << "the other server has not said anything yet";
  EXPECT_THAT(Hear(3, max_ - 1), IsEmpty());
  EXPECT_EQ(ContractOfTable(), "async");
  EXPECT_THAT(Hear(3, max_),
              ElementsAre(AllOf(HasSubstr("table 't' (1) goes from async to buffered"),
                                HasSubstr("15.0 updates late"))));
  EXPECT_EQ(ContractOfTable(), "buffered");
  EXPECT_EQ(state_.view().epoch(), 1u);
  EXPECT_EQ(state_.view().tables(0).contract_epoch(), 1u);
  EXPECT_THAT(Hear(2, max_), IsEmpty()) << "once";
}

TEST_F(ContractFallbackTest, AServerThatIsGoneMustBeHeardAnew) {
  Hear(2, max_);
  fallback_->OnDeparture(NodeId(2));
  EXPECT_THAT(Hear(3, max_), IsEmpty());
}

TEST_F(ContractFallbackTest, LeaveCanBeGivenLater) {
  fallback_.emplace(ContractFallback::Options{.enabled = false}, state_, tables_);
  Hear(2, max_);
  EXPECT_THAT(Hear(3, max_), IsEmpty());
  fallback_->SetOptions({.enabled = true});
  Hear(2, max_);
  Hear(3, max_);
  EXPECT_EQ(ContractOfTable(), "buffered");
}

TEST_F(ContractFallbackTest, NothingWithoutLeave) {
  fallback_.emplace(ContractFallback::Options{.enabled = false}, state_, tables_);
  Hear(2, max_);
  EXPECT_THAT(Hear(3, max_), IsEmpty());
  EXPECT_EQ(ContractOfTable(), "async");
}

TEST_F(ContractFallbackTest, UnknownTablesAreIgnored) {
  EXPECT_THAT(Hear(2, max_, 77), IsEmpty());
  Hear(2, max_);
  state_.mutable_view()->clear_tables();
  EXPECT_THAT(Hear(3, max_), IsEmpty());
}

}  // namespace
}  // namespace covey::scheduler

// SPDX-License-Identifier: Apache-2.0
#include "common/contract/contract.h"

#include <gtest/gtest.h>

#include <vector>

namespace covey {
namespace {

TEST(Contract, EveryNameIsReadBack) {
  for (const char* name :
       {"bsp", "ssp:0", "ssp:3", "async", "buffered", "buffered:4", "buffered,cut=8",
        "buffered:4,cut=2", "local:1", "local:16,quorum=2,grace=500ms,overlap=4"}) {
    const absl::StatusOr<Contract> contract = ParseContract(name);
    ASSERT_TRUE(contract.ok()) << contract.status();
    EXPECT_EQ(ContractName(*contract), name);
    const absl::StatusOr<Contract> again = ContractFromProto(ContractToProto(*contract));
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_EQ(ContractName(*again), name);
  }
}

TEST(Contract, IgnoresWhatItsKindDoesNotName) {
  proto::Contract contract;
  contract.set_kind(proto::Contract::SSP);
  contract.set_staleness(3);
  contract.set_buffer(5000);
  contract.set_local_steps(7);
  EXPECT_EQ(*ContractFromProto(contract), (Contract{.kind = Contract::Kind::kSsp, .staleness = 3}));
}

TEST(Contract, RefusesWhatMakesNoSense) {
  for (const char* name :
       {"", "bsp:1", "ssp", "ssp:x", "async,cut=1", "buffered:0", "buffered:5000", "buffered,cut=0",
        "buffered,quorum=1", "local", "local:0", "local:100001", "local:4,overlap=4",
        "local:4,grace=2h", "local:4,grace=-1s", "local:4,x=1"}) {
    const absl::StatusOr<Contract> contract = ParseContract(name);
    EXPECT_EQ(contract.status().code(), absl::StatusCode::kInvalidArgument) << name;
  }
  EXPECT_EQ(ContractFromProto(proto::Contract()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(Contract, UnderLocalGroupsAreWaitedForFromTheirFirstWholeRound) {
  const std::vector<LiveGroup> live = {{.id = GroupId(1)},
                                       {.id = GroupId(2), .first_step = Step(2)},
                                       {.id = GroupId(3), .first_step = Step(9)},
                                       {.id = GroupId(4), .first_step = Step(10)}};
  const auto waited = [&live](const char* contract) {
    std::vector<uint64_t> first;
    for (const LiveGroup& group : ParseContract(contract)->WaitedFor(live)) {
      first.push_back(group.first_step.value());
    }
    return first;
  };
  EXPECT_EQ(waited("bsp"), (std::vector<uint64_t>{1, 2, 9, 10}));
  EXPECT_EQ(waited("local:1"), (std::vector<uint64_t>{1, 2, 9, 10}));
  EXPECT_EQ(waited("local:4"), (std::vector<uint64_t>{1, 2, 3, 4}));
}

TEST(Contract, TheContractInForceIsTheLatest) {
  proto::Table table;
  table.mutable_spec()->mutable_contract()->set_kind(proto::Contract::ASYNC);
  EXPECT_EQ(ContractInForce(table)->kind, Contract::Kind::kAsync);
  table.mutable_contract()->set_kind(proto::Contract::BSP);
  EXPECT_EQ(ContractInForce(table)->kind, Contract::Kind::kBsp);
}

TEST(Contract, DiscardsWhatIsAsOldAsTheCut) {
  const Contract cut{.kind = Contract::Kind::kBuffered, .staleness_cut = 4};
  EXPECT_FALSE(cut.Discards(Version(7), Version(10)));
  EXPECT_TRUE(cut.Discards(Version(6), Version(10)));
  EXPECT_FALSE(cut.Discards(Version(0), Version(10)));   // unknown
  EXPECT_FALSE(cut.Discards(Version(99), Version(10)));  // of another history
  EXPECT_FALSE(Contract().Discards(Version(1), Version(10)));
  const Contract ssp{.kind = Contract::Kind::kSsp, .staleness_cut = 4};
  EXPECT_FALSE(ssp.Discards(Version(1), Version(10)));
}

TEST(Contract, LocalTablesStayLocal) {
  const Contract bsp{.kind = Contract::Kind::kBsp};
  const Contract buffered{.kind = Contract::Kind::kBuffered};
  const Contract local{.kind = Contract::Kind::kLocal, .local_steps = 4};
  EXPECT_TRUE(bsp.CheckSwitchTo(buffered).ok());
  EXPECT_EQ(bsp.CheckSwitchTo(local).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(local.CheckSwitchTo(buffered).code(), absl::StatusCode::kInvalidArgument);
}

TEST(Contract, RoundsOfATableInUseStayAsLong) {
  const Contract local{.kind = Contract::Kind::kLocal, .local_steps = 4};
  const Contract longer{.kind = Contract::Kind::kLocal, .local_steps = 8};
  const Contract overlapping{.kind = Contract::Kind::kLocal, .local_steps = 4, .overlap_steps = 1};
  const Contract impatient{.kind = Contract::Kind::kLocal, .local_steps = 4, .quorum = 2};
  EXPECT_EQ(local.CheckSwitchTo(longer).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(local.CheckSwitchTo(overlapping).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(local.CheckSwitchTo(impatient).ok());
}

TEST(Contract, ParsesWhatItPrints) {
  for (const char* text : {"bsp", "ssp:0", "ssp:2", "async", "buffered", "buffered:4"}) {
    const auto contract = ParseContract(text);
    ASSERT_TRUE(contract.ok()) << text;
    EXPECT_EQ(ContractName(*contract), text);
  }
  for (const char* text :
       {"", "ssp", "ssp:", "ssp:-1", "ssp:x", "bsp:1", "async:2", "buffered:0", "sync"}) {
    EXPECT_EQ(ParseContract(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(Contract, TurnsAReadersStepIntoWhatOthersMustHaveReached) {
  EXPECT_EQ(ParseContract("bsp")->RequiredStep(Step(5)), Step(5));
  EXPECT_EQ(ParseContract("ssp:0")->RequiredStep(Step(5)), Step(5));
  EXPECT_EQ(ParseContract("ssp:2")->RequiredStep(Step(5)), Step(3));
  EXPECT_EQ(ParseContract("ssp:9")->RequiredStep(Step(5)), Step(0));
  EXPECT_EQ(ParseContract("async")->RequiredStep(Step(5)), std::nullopt);
  EXPECT_EQ(ParseContract("buffered")->RequiredStep(Step(5)), std::nullopt);
}

}  // namespace
}  // namespace covey

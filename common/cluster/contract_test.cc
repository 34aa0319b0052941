#include "common/cluster/contract.h"

#include <gtest/gtest.h>

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

TEST(Contract, TheContractInForceIsTheLatest) {
  proto::Table table;
  table.mutable_spec()->mutable_contract()->set_kind(proto::Contract::ASYNC);
  EXPECT_EQ(ContractInForce(table)->kind, Contract::Kind::kAsync);
  table.mutable_contract()->set_kind(proto::Contract::BSP);
  EXPECT_EQ(ContractInForce(table)->kind, Contract::Kind::kBsp);
}

}  // namespace
}  // namespace covey

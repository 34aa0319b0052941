// SPDX-License-Identifier: Apache-2.0
#include "tests/process/ledger.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"

namespace covey {

namespace {

absl::StatusOr<proto::TableSpec> Table(const std::string& contract, uint32_t replicas) {
  COVEY_ASSIGN_OR_RETURN(const Contract parsed, ParseContract(contract));
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("ledger/", absl::StrReplaceAll(contract, {{":", "-"}})));
  spec.set_data_type(proto::FLOAT32);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_learning_rate()->set_base(1);
  *spec.mutable_contract() = ContractToProto(parsed);
  spec.set_durability(replicas > 1 ? proto::REPLICATED : proto::MEMORY);
  if (replicas > 1) spec.set_replicas(replicas);
  return spec;
}

}  // namespace

absl::StatusOr<proto::TableSpec> LedgerTable(const std::string& contract, uint32_t replicas) {
  COVEY_ASSIGN_OR_RETURN(proto::TableSpec spec, Table(contract, replicas));
  spec.add_shape(kLedgerTableElements);
  spec.set_shard_bytes(kLedgerTableElements / kLedgerShards * sizeof(float));
  return spec;
}

absl::StatusOr<proto::TableSpec> LedgerRows(const std::string& contract, uint32_t replicas) {
  COVEY_ASSIGN_OR_RETURN(proto::TableSpec spec, Table(contract, replicas));
  spec.set_name(absl::StrCat(spec.name(), "/rows"));
  spec.mutable_sparse()->set_width(kLedgerSlots);
  return spec;
}

float LedgerGradient(const proto::TableSpec& table) {
  return -static_cast<float>(std::max<uint64_t>(1, table.contract().buffer()));
}

}  // namespace covey

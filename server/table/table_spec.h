#pragma once

#include "absl/status/statusor.h"
#include "common/contract/contract.h"
#include "proto/view.pb.h"
#include "server/table/asynchrony_rules.h"
#include "server/table/dense_shard.h"

namespace covey::server {

// What a table's definition means to a shard: defaults filled in, the reserved refused.
struct TableRules {
  Contract contract;
  // Whether a push that holds NaN or infinity is refused.
  bool refuses_non_finite = true;
  AsynchronyRules asynchrony;
  DenseShardConfig shard;
};

// INVALID_ARGUMENT: a field is unknown, reserved for a later version, or out of range; names table
// and field. Ranges of numbers are checked where they are used: DenseShard::Create.
absl::StatusOr<TableRules> RulesOf(const proto::Table& table, const proto::Shard& shard);

}  // namespace covey::server

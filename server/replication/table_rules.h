// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "absl/status/statusor.h"
#include "common/contract/contract.h"
#include "common/table/definition.h"
#include "common/table/norm_gate.h"
#include "common/table/round_mean.h"
#include "proto/view.pb.h"
#include "server/replication/shard_content.h"

namespace covey::server {

// The part of a table's definition that its shards need.
struct TableRules {
  Contract contract;
  // Whether a push that holds NaN or infinity is refused.
  bool refuses_non_finite = true;
  std::optional<NormGateRules> norm_gate;
  AsynchronyRules asynchrony;
  // Of a dense table kOfAllPushes.
  RoundMean round_mean = RoundMean::kOfAllPushes;
  ShardContent::Config shard;
};

// Errors as TableDefinition::InForce.
absl::StatusOr<TableRules> RulesOf(const proto::Table& table, const proto::Shard& shard);

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/contract/contract.h"
#include "common/optimizer/learning_rate.h"
#include "common/optimizer/optimizer.h"
#include "common/table/asynchrony_rules.h"
#include "common/table/initializer_config.h"
#include "common/table/norm_gate.h"
#include "common/table/round_mean.h"
#include "common/table/row_life_cycle.h"
#include "common/tensor/wire_format.h"
#include "proto/view.pb.h"

namespace covey {

// What a table is: its spec, checked, with defaults filled in. Scheduler, servers and workers all
// read specs through it, so that a table means the same to all of them. The configs in it are
// valid. Plain value.
struct TableDefinition {
  // The optimizer that a worker applies to its own values between two rounds.
  struct InnerSteps {
    OptimizerConfig optimizer;
    LearningRateConfig learning_rate;
  };

  // What a sparse table has in place of a shape.
  struct Rows {
    size_t width = 0;                        // elements of each
    WireFormat type = WireFormat::kFloat32;  // in which the values are stored, and travel
    RowLifeCycle life_cycle;
    RoundMean round_mean = RoundMean::kOfAllPushes;
  };

  std::string name;
  // Product of the shape; of a sparse table, kKeySlots (key_slots.h). Shards are ranges of these.
  uint64_t elements = 0;
  // Set for sparse tables, and only for these.
  std::optional<Rows> sparse;
  InitializerConfig initializer;
  // Under contract LOCAL the outer optimizer. Unless the spec says otherwise SGD with a rate of 1,
  // which takes the mean of the groups' values.
  OptimizerConfig optimizer;
  LearningRateConfig learning_rate;
  // Set for LOCAL tables, and only for these.
  std::optional<InnerSteps> inner;
  Contract contract;
  // Whether a push that holds NaN or infinity is refused.
  bool refuses_non_finite = true;
  // Nothing = pushes of any size are applied.
  std::optional<NormGateRules> norm_gate;
  AsynchronyRules asynchrony;
  // The format in which gradients travel. A server accepts every format, regardless of this.
  WireFormat gradient_format = WireFormat::kFloat32;
  // The format in which values travel to members of groups; not kTopBlock.
  WireFormat value_format = WireFormat::kFloat32;

  // INVALID_ARGUMENT: names table, field, value, and the allowed range; also for kinds that this
  // program does not know, because it is older than the scheduler.
  static absl::StatusOr<TableDefinition> Parse(const proto::TableSpec& spec);
  // The definition of an existing table: with the contract in force, which may differ from that of
  // its spec. Errors as Parse.
  static absl::StatusOr<TableDefinition> InForce(const proto::Table& table);
};

}  // namespace covey

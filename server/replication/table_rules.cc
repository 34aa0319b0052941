// SPDX-License-Identifier: Apache-2.0
#include "server/replication/table_rules.h"

#include <algorithm>
#include <cstdint>

#include "common/base/status_macros.h"
#include "common/cluster/limits.h"

namespace covey::server {

namespace {

SparseShardConfig SparseConfigOf(const TableDefinition& definition, const proto::Shard& shard) {
  // Keys are spread evenly over the slots.
  const uint64_t slots = shard.element_count();
  const uint64_t part =
      definition.sparse->rows_max / kKeySlots * slots +
      (definition.sparse->rows_max % kKeySlots * slots + kKeySlots - 1) / kKeySlots;
  return {.first_slot = shard.first_element(),
          .slot_count = slots,
          .width = definition.sparse->width,
          .rows_max = definition.sparse->rows_max == 0 ? kRowsPerShardMax
                                                       : std::min(part, kRowsPerShardMax),
          .initializer = definition.initializer,
          .optimizer = definition.optimizer,
          .learning_rate = definition.learning_rate};
}

}  // namespace

absl::StatusOr<TableRules> RulesOf(const proto::Table& table, const proto::Shard& shard) {
  COVEY_ASSIGN_OR_RETURN(const TableDefinition definition, TableDefinition::InForce(table));
  TableRules rules{.contract = definition.contract,
                   .refuses_non_finite = definition.refuses_non_finite,
                   .asynchrony = definition.asynchrony,
                   .shard = {}};
  if (definition.sparse) {
    rules.shard = SparseConfigOf(definition, shard);
  } else {
    rules.shard = DenseShardConfig{.first_element = shard.first_element(),
                                   .element_count = shard.element_count(),
                                   .initializer = definition.initializer,
                                   .optimizer = definition.optimizer,
                                   .learning_rate = definition.learning_rate};
  }
  return rules;
}

}  // namespace covey::server

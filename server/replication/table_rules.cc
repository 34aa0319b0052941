// SPDX-License-Identifier: Apache-2.0
#include "server/replication/table_rules.h"

#include <algorithm>
#include <cstdint>

#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/table/matrix_columns.h"

namespace covey::server {

namespace {

// The part of the table's rows that a shard may hold. Keys are spread over the slots evenly, but
// not exactly.
uint64_t RowsMaxOf(uint64_t rows_of_table, uint64_t slots) {
  if (rows_of_table == 0) return kRowsPerShardMax;
  const uint64_t part =
      std::min(rows_of_table / kKeySlots * slots +
                   (rows_of_table % kKeySlots * slots + kKeySlots - 1) / kKeySlots,
               kRowsPerShardMax);
  return slots == kKeySlots ? part : std::min(part + part / 20, kRowsPerShardMax);
}

SparseShardConfig SparseConfigOf(const TableDefinition& definition, const proto::Shard& shard) {
  const RowLifeCycle& life_cycle = definition.sparse->life_cycle;
  return {
      .first_slot = shard.first_element(),
      .slot_count = shard.element_count(),
      .width = definition.sparse->width,
      .type = definition.sparse->type,
      .rows_max = RowsMaxOf(life_cycle.rows_max, shard.element_count()),
      .evicts = life_cycle.when_full == WhenFull::kEvict,
      .evict_by = life_cycle.evict_by,
      .admission = {.after = life_cycle.admit_after, .probability = life_cycle.admit_probability},
      .initializer = definition.initializer,
      .optimizer = definition.optimizer,
      .learning_rate = definition.learning_rate};
}

}  // namespace

absl::StatusOr<TableRules> RulesOf(const proto::Table& table, const proto::Shard& shard) {
  COVEY_ASSIGN_OR_RETURN(const TableDefinition definition, TableDefinition::InForce(table));
  TableRules rules{.contract = definition.contract,
                   .refuses_non_finite = definition.refuses_non_finite,
                   .norm_gate = definition.norm_gate,
                   .asynchrony = definition.asynchrony,
                   .shard = {}};
  if (definition.sparse) {
    rules.round_mean = definition.sparse->round_mean;
    rules.shard = SparseConfigOf(definition, shard);
  } else {
    rules.shard = DenseShardConfig{.first_element = shard.first_element(),
                                   .element_count = shard.element_count(),
                                   .columns = MatrixColumns(table.spec()),
                                   .initializer = definition.initializer,
                                   .optimizer = definition.optimizer,
                                   .learning_rate = definition.learning_rate};
  }
  return rules;
}

}  // namespace covey::server

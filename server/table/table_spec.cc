// SPDX-License-Identifier: Apache-2.0
#include "server/table/table_spec.h"

#include "common/base/status_macros.h"

namespace covey::server {

absl::StatusOr<TableRules> RulesOf(const proto::Table& table, const proto::Shard& shard) {
  COVEY_ASSIGN_OR_RETURN(const TableDefinition definition, TableDefinition::InForce(table));
  return TableRules{.contract = definition.contract,
                    .refuses_non_finite = definition.refuses_non_finite,
                    .asynchrony = definition.asynchrony,
                    .shard = {.first_element = shard.first_element(),
                              .element_count = shard.element_count(),
                              .initializer = definition.initializer,
                              .optimizer = definition.optimizer,
                              .learning_rate = definition.learning_rate}};
}

}  // namespace covey::server

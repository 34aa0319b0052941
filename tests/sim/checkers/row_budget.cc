// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/checkers/row_budget.h"

#include <cmath>
#include <map>

#include "absl/strings/str_cat.h"
#include "common/cluster/ids.h"
#include "common/cluster/limits.h"

namespace covey::sim {

void RowBudget::Look(const proto::ClusterView& view, const std::vector<ReplicaSnapshot>& replicas) {
  std::map<ShardId, double> most;
  for (const proto::Table& table : view.tables()) {
    if (table.spec().sparse().rows_max() == 0) continue;
    for (const proto::Shard& shard : table.shards()) {
      const double share = static_cast<double>(shard.element_count()) / kKeySlots;
      const double rows = std::ceil(static_cast<double>(table.spec().sparse().rows_max()) * share);
      most[{TableId(table.id()), ShardIndex(shard.index())}] = share < 1 ? rows * 1.05 : rows;
    }
  }
  for (const ReplicaSnapshot& replica : replicas) {
    const auto budget = most.find(replica.shard);
    if (budget == most.end() || static_cast<double>(replica.rows) <= budget->second) continue;
    violations_.Add("row_budget",
                    absl::StrCat(replica.server, " holds ", replica.rows, " rows of table ",
                                 replica.shard.table.value(), " shard ",
                                 replica.shard.index.value(), ", more than ", budget->second));
  }
}

}  // namespace covey::sim

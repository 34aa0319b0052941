// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "proto/view.pb.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/process/replica_snapshot.h"

namespace covey::sim {

// Invariant: no server holds more rows of a shard than the shard's share of the slots allows of the
// table's rows_max, and 5 % more where there are several shards.
class RowBudget {
 public:
  explicit RowBudget(Violations& violations) : violations_(violations) {}

  void Look(const proto::ClusterView& view, const std::vector<ReplicaSnapshot>& replicas);

 private:
  Violations& violations_;
};

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/make_workload.h"

#include "common/base/check.h"
#include "tests/sim/workloads/counting/counting_workload.h"
#include "tests/sim/workloads/groups/groups_workload.h"
#include "tests/sim/workloads/initialize/initialize_workload.h"
#include "tests/sim/workloads/snapshot/snapshot_workload.h"
#include "tests/sim/workloads/staleness/staleness_workload.h"
#include "tests/sim/workloads/work/work_workload.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {

std::unique_ptr<Workload> MakeWorkload(absl::string_view name, Random random,
                                       Violations& violations) {
  COVEY_CHECK(IsWorkload(name));
  if (name == kCounting) return MakeCountingWorkload(random, violations);
  if (name == kFunctions) return MakeFunctionsWorkload(random, violations);
  if (name == kGated) return MakeGatedWorkload(random, violations);
  if (name == kGroups) return MakeGroupsWorkload(random, violations);
  if (name == kInitialize) return MakeInitializeWorkload(random, violations);
  if (name == kMomentum) return MakeMomentumWorkload(random, violations);
  if (name == kSnapshot) return MakeSnapshotWorkload(random, violations);
  if (name == kSnapshotSparse) return MakeSnapshotSparseWorkload(random, violations);
  if (name == kSparse) return MakeSparseWorkload(random, violations);
  if (name == kWork) return MakeWorkWorkload(random, violations);
  return MakeStalenessWorkload(random, ContractKindOf(name), violations);
}

}  // namespace covey::sim

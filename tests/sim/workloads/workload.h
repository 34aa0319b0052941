// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "absl/strings/string_view.h"
#include "common/base/random.h"
#include "tests/sim/checkers/violations.h"
#include "tests/sim/cluster/sim_cluster.h"
#include "tests/sim/workloads/expected_errors.h"

namespace covey::sim {

// The use of a simulated cluster, and its correctness conditions. After SetUp the cluster runs with
// faults. It is then healed and must become Finished in time; Check comes last.
//
// Actor-confined. Outlives the cluster that it was set up in.
class Workload {
 public:
  virtual ~Workload() = default;
  virtual std::string name() const = 0;
  // The number of groups that the cluster must have, of one worker each unless Adapt changes that.
  virtual uint32_t groups() const = 0;
  // Adapts the drawn configuration to this workload.
  virtual void Adapt(SimConfig&) const {}
  // Whether workers that are late, or return, get groups.
  virtual bool is_elastic() const { return false; }
  // Adds the worker nodes, and the observers of what they do.
  virtual void SetUp(SimCluster& cluster) = 0;
  virtual bool Finished() const = 0;
  // Checks the final state; observers have checked the rest all along.
  virtual void Check() = 0;
  // One line: a summary of the work.
  virtual std::string Report() const = 0;
};

// Creates a workload from random draws; `violations` outlives it.
std::unique_ptr<Workload> MakeCountingWorkload(Random random, Violations& violations);
// `kind`: of the first contract; empty = drawn.
std::unique_ptr<Workload> MakeStalenessWorkload(Random random, absl::string_view kind,
                                                Violations& violations);
std::unique_ptr<Workload> MakeGroupsWorkload(Random random, Violations& violations);
std::unique_ptr<Workload> MakeWorkWorkload(Random random, Violations& violations);

// Names of all workloads, in the order of their constructors above.
inline constexpr absl::string_view kCounting = "counting";
inline constexpr absl::string_view kStaleness = "staleness";
inline constexpr absl::string_view kGroups = "groups";
inline constexpr absl::string_view kWork = "work";
inline constexpr absl::string_view kWorkloads[] = {kCounting, kStaleness, kGroups, kWork};
// "staleness:bsp": begins under a contract of that kind.
inline constexpr absl::string_view kContractKinds[] = {"bsp", "ssp", "async", "buffered", "local"};
// Whether MakeWorkload knows the name.
bool IsWorkload(absl::string_view name);
// Precondition: IsWorkload(name).
std::unique_ptr<Workload> MakeWorkload(absl::string_view name, Random random,
                                       Violations& violations);

}  // namespace covey::sim

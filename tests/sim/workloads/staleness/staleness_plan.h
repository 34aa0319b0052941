// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/contract/contract.h"
#include "proto/table.pb.h"

namespace covey::sim {

// Configuration of a run of the workload "staleness". A value.
struct StalenessPlan {
  // The most groups that a run can have: late ones and those of returned workers included.
  static constexpr uint32_t kPositionsMax = 12;
  // After the fault phase every remaining group takes this many further steps, which must succeed.
  static constexpr uint64_t kLastSteps = 3;

  uint32_t groups = 2;  // when training begins, of one member each
  uint32_t shards = 1;
  uint64_t ordinary_steps = 1;
  Contract contract;
  // The contracts that the table is switched to, in this order.
  std::vector<Contract> switches;
  bool elastic = false;
  // Start times of late workers, as fractions of the fault phase. Empty without elastic membership.
  std::vector<double> late_starts;
  double haste = 1;
  absl::Duration deadline_max;
  uint32_t replicas = 0;  // of each shard; 0 = the default

  uint64_t steps() const { return ordinary_steps + kLastSteps; }
  // Of each shard.
  uint64_t elements() const { return (kPositionsMax * steps() + 15) / 16 * 16; }
  // Some contract combines all groups' pushes for a step into one update.
  bool waits_for_steps() const;
  // Some contract combines several pushes into one update.
  bool averages() const;
  // Some contract does not apply pushes that are too stale.
  bool discards() const;
  bool HasContract(Contract::Kind kind) const;
  proto::TableSpec Spec() const;
};

// `kind`: of the first contract; empty = drawn.
StalenessPlan DrawStalenessPlan(Random random, absl::string_view kind);
// One line.
std::string Describe(const StalenessPlan& plan);

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/time/time.h"
#include "common/base/random.h"
#include "common/cluster/job_durability.h"
#include "common/contract/contract.h"
#include "common/tensor/wire_format.h"
#include "proto/table.pb.h"
#include "tests/sim/checkers/step_rows.h"
#include "tests/sim/config/sim_config.h"

namespace covey::sim {

// Configuration of a run of the workload "snapshot". A value.
struct SnapshotPlan {
  // Of each shard; every push owns one.
  static constexpr uint64_t kElements = kRowClasses * kRowColumns;
  // After so many, groups begin no further steps.
  static constexpr uint64_t kElementsOfFirstJob = 768;
  static constexpr uint64_t kElementsOfBothJobs = 1792;

  uint32_t groups = 1;       // of the first job, of one member each
  uint32_t next_groups = 1;  // of the next one
  double next_servers = 0;   // the share of all servers that the next job has
  uint32_t shards = 1;
  uint32_t replicas = 0;  // of each shard; 0 = the default
  Contract contract;
  // The scheduler may make the contract a buffered one.
  bool may_fall_back = false;
  // ADAGRAD instead of SGD.
  bool adaptive = false;
  bool elastic = false;
  double haste = 1;
  absl::Duration deadline_max;  // of a push
  // Steps that each group of the next job takes at least.
  uint64_t steps = 1;

  uint64_t examples = 1;
  uint64_t item_examples = 1;
  uint64_t passes = 1;
  uint64_t data_seed = 0;
  uint64_t step_examples = 1;  // the most that a group trains in a step

  absl::Duration snapshot_every;  // infinite = only on request
  JobDurability durability;
  uint32_t snapshots_kept = 1;
  absl::Duration snapshot_deadline;
  absl::Duration request_pause;  // the longest time between two requests of the operator
  bool restores = false;         // who also restores the table under another name
  SimStore::Options store;
  // Of gradients on the wire. Each is -1 in one element, which no format rounds.
  WireFormat format = WireFormat::kFloat32;
  // Each so many steps, groups also push to a second table, which no other step changes; 0 = there
  // is none.
  uint64_t rare_every = 0;
  // Groups also push each step to a third table, which is sparse (step_rows.h).
  bool sparse = false;
  // Which rows of that table are made, and which go.
  proto::SparseRows life_cycle;
  proto::DataType row_type = proto::FLOAT32;
  proto::SparseRows::RoundMean round_mean = proto::SparseRows::OF_ALL_PUSHES;

  // When the first job is killed, as a fraction of the fault phase; later if it has no snapshot.
  double killed_at = 0.5;
  // The probability that a process survives that.
  double survival = 0;

  uint32_t workers() const { return std::max(groups, next_groups); }
  // Some contract may combine several pushes into one update.
  bool averages() const;
  StepValues step_values() const;
  // The contract combines all groups' pushes for a step into one update.
  bool waits_for_steps() const {
    return contract.kind == Contract::Kind::kBsp || contract.kind == Contract::Kind::kLocal;
  }
  // Whether a step is pushed to the second table, too.
  bool IsRare(uint64_t step) const { return rare_every > 0 && step % rare_every == 0; }
  proto::TableSpec Spec() const;
  // Of the second table: asynchronous, so that groups may leave steps out.
  proto::TableSpec RareSpec() const;
  // Of the sparse table.
  proto::TableSpec RowSpec() const;
  WireFormat row_format() const {
    return format == WireFormat::kInt8Block ? WireFormat::kFloat16 : format;
  }
};

SnapshotPlan DrawSnapshotPlan(Random random);
// The same with a sparse table, all of whose rows are made at once, and stay, in half of the draws.
SnapshotPlan DrawSnapshotSparsePlan(Random random);
// One line.
std::string Describe(const SnapshotPlan& plan);

}  // namespace covey::sim

// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/snapshot/snapshot_plan.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/whole_cluster.h"
#include "tests/sim/workloads/drawn_formats.h"

namespace covey::sim {
namespace {

constexpr uint32_t kGroupsMax = 4;

Contract DrawContract(Random& random, uint32_t groups) {
  switch (random.Below(5)) {
    case 0:
      return {.kind = Contract::Kind::kBsp};
    case 1:
      return {.kind = Contract::Kind::kSsp, .staleness = random.Below(4)};
    case 2:
      return {.kind = Contract::Kind::kBuffered, .buffer = random.Below(groups + 1)};
    case 3: {
      Contract contract{.kind = Contract::Kind::kLocal, .quorum = random.Below(groups + 1)};
      if (random.Chance(0.7)) contract.grace = absl::Milliseconds(1 + random.Below(2000));
      return contract;
    }
    default:
      return {.kind = Contract::Kind::kAsync};
  }
}

void SetContract(const Contract& contract, proto::TableSpec& spec) {
  *spec.mutable_contract() = ContractToProto(contract);
  if (contract.kind != Contract::Kind::kLocal) return;
  spec.mutable_inner_optimizer()->set_kind(proto::Optimizer::SGD);
  spec.mutable_inner_learning_rate()->set_base(1);
}

SimStore::Options DrawStore(Random random) {
  SimStore::Options store;
  store.disk.delay_max = DrawDuration(random, absl::Microseconds(50), absl::Milliseconds(200));
  if (random.Chance(0.5)) store.disk.chance = 0.05 * random.Uniform() * random.Uniform();
  if (random.Chance(0.3)) store.restarts = 0.01 * random.Uniform();
  return store;
}

}  // namespace

bool SnapshotPlan::averages() const {
  return may_fall_back ||
         (contract.kind != Contract::Kind::kAsync && contract.kind != Contract::Kind::kSsp);
}

StepValues SnapshotPlan::step_values() const {
  // A row is rounded to one of the two neighbors of each value.
  const float rounding = row_type == proto::BFLOAT16  ? 0x1p-7f
                         : row_type == proto::FLOAT16 ? 0x1p-10f
                                                      : 0;
  return {.averages = averages(), .adaptive = adaptive, .rounding = rounding};
}

proto::TableSpec SnapshotPlan::Spec() const {
  proto::TableSpec spec;
  spec.set_name("steps");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(shards);
  spec.add_shape(kElements);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_optimizer()->set_kind(adaptive ? proto::Optimizer::ADAGRAD : proto::Optimizer::SGD);
  SetContract(contract, spec);
  spec.set_shard_bytes(kElements * sizeof(float));
  SetReplicas(replicas, spec);
  return spec;
}

proto::TableSpec SnapshotPlan::RareSpec() const {
  SnapshotPlan rare = *this;
  rare.contract = {.kind = Contract::Kind::kAsync};
  proto::TableSpec spec = rare.Spec();
  spec.set_name("rare");
  return spec;
}

proto::TableSpec SnapshotPlan::RowSpec() const {
  proto::TableSpec spec;
  spec.set_name("rows");
  spec.set_data_type(row_type);
  *spec.mutable_sparse() = life_cycle;
  spec.mutable_sparse()->set_width(kRowColumns);
  spec.mutable_sparse()->set_round_mean(round_mean);
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_optimizer()->set_kind(adaptive ? proto::Optimizer::ADAGRAD : proto::Optimizer::SGD);
  SetContract(contract, spec);
  SetReplicas(replicas, spec);
  return spec;
}

SnapshotPlan DrawSnapshotPlan(Random random) {
  SnapshotPlan plan;
  plan.groups = 1 + static_cast<uint32_t>(random.Below(kGroupsMax));
  plan.next_groups = 1 + static_cast<uint32_t>(random.Below(kGroupsMax));
  plan.next_servers = random.Uniform();
  plan.shards = 1 + static_cast<uint32_t>(random.Below(4));
  plan.replicas = static_cast<uint32_t>(random.Below(4));
  plan.contract = DrawContract(random, std::min(plan.groups, plan.next_groups));
  plan.adaptive = random.Chance(0.4);
  plan.elastic = random.Chance(0.5);
  plan.haste = 0.1 + random.Uniform();
  plan.deadline_max = DrawDuration(random, absl::Seconds(1), absl::Seconds(10));
  plan.steps = 5 + random.Below(30);
  plan.examples = 20 + random.Below(300);
  plan.item_examples = 1 + random.Below(20);
  plan.passes = 1 + random.Below(3);
  plan.data_seed = random.Chance(0.7) ? random.Next() : 0;
  plan.step_examples = std::max<uint64_t>(
      1 + random.Below(10), plan.passes * plan.examples / (plan.steps * plan.next_groups));
  plan.snapshot_every = random.Chance(0.7)
                            ? DrawDuration(random, absl::Seconds(1), absl::Seconds(20))
                            : absl::InfiniteDuration();
  plan.snapshots_kept = 1 + static_cast<uint32_t>(random.Below(3));
  plan.snapshot_deadline = DrawDuration(random, absl::Seconds(10), absl::Seconds(120));
  plan.request_pause = DrawDuration(random, absl::Seconds(1), absl::Seconds(20));
  plan.store = DrawStore(random.Split(1));
  plan.killed_at = 0.2 + 0.8 * random.Uniform();
  if (random.Chance(0.4)) plan.survival = 0.5 * random.Uniform();
  plan.may_fall_back = random.Chance(0.3);
  plan.restores = random.Chance(0.4);
  if (random.Chance(0.3)) {
    plan.durability = {.kind = JobDurability::Kind::kFlushed,
                       .flush_every = DrawDuration(random, absl::Seconds(1), absl::Seconds(5))};
  }
  if (random.Chance(0.6)) plan.rare_every = 2 + random.Below(30);
  if (plan.durability.kind == JobDurability::Kind::kFlushed) {
    plan.format = kDrawnFormats[random.Below(std::size(kDrawnFormats))];
    // Flushes follow each other, and have few updates to log.
    if (random.Chance(0.5)) {
      plan.format = WireFormat::kInt8Block;
      plan.haste = 2 + 4 * random.Uniform();
      plan.snapshot_every = absl::InfiniteDuration();
      plan.request_pause = absl::Minutes(1);
    }
  }
  return plan;
}

SnapshotPlan DrawSnapshotSparsePlan(Random random) {
  SnapshotPlan plan = DrawSnapshotPlan(random);
  plan.sparse = true;
  // Other streams, so that the rest of the plan does not depend on them.
  plan.row_type =
      std::array{proto::FLOAT32, proto::BFLOAT16, proto::FLOAT16}[random.Split(51).Below(3)];
  if (plan.contract.kind == Contract::Kind::kLocal && random.Split(52).Chance(0.5)) {
    plan.round_mean = proto::SparseRows::OF_HOLDERS;
  }
  Random rows = random.Split(50);
  if (rows.Chance(0.5)) return plan;
  if (rows.Chance(0.6)) {
    // There are some 300 rows, and an update holds up to 10 for each of its pushes.
    plan.life_cycle.set_rows_max(60 + rows.Below(200));
    plan.life_cycle.set_when_full(rows.Chance(0.8) ? proto::SparseRows::EVICT
                                                   : proto::SparseRows::SKIP);
    if (plan.life_cycle.when_full() == proto::SparseRows::EVICT) {
      plan.life_cycle.set_evict_by(static_cast<proto::EvictBy>(rows.Below(3)));
    }
  }
  if (plan.life_cycle.rows_max() == 0 || rows.Chance(0.4)) {
    plan.life_cycle.set_admit_after(static_cast<uint32_t>(2 + rows.Below(3)));
  }
  if (rows.Chance(0.2)) plan.life_cycle.set_admit_probability(0.3 + 0.6 * rows.Uniform());
  return plan;
}

std::string Describe(const SnapshotPlan& plan) {
  return absl::StrCat(
      "groups=", plan.groups, ">", plan.next_groups, " shards=", plan.shards,
      " replicas=", plan.replicas, " contract=", ContractName(plan.contract),
      plan.adaptive ? " adagrad" : "", " elastic=", plan.elastic, " examples=", plan.passes, "x",
      plan.examples, " every=", absl::FormatDuration(plan.snapshot_every),
      " durability=", plan.durability.Show(), " kept=", plan.snapshots_kept,
      " deadline=", absl::FormatDuration(plan.snapshot_deadline),
      " store=", absl::FormatDuration(plan.store.disk.delay_max), "/", plan.store.disk.chance, "/",
      plan.store.restarts, " killed_at=", plan.killed_at, " survival=", plan.survival,
      plan.restores ? " restores" : "", " rare=", plan.rare_every,
      " format=", WireFormatName(plan.format),
      plan.sparse ? absl::StrCat(" rows={", plan.life_cycle.ShortDebugString(), "} ",
                                 proto::DataType_Name(plan.row_type), " ",
                                 proto::SparseRows::RoundMean_Name(plan.round_mean))
                  : "");
}

}  // namespace covey::sim

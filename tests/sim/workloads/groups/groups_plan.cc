// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/groups/groups_plan.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/tensor/wire_format_proto.h"
#include "tests/sim/checkers/whole_cluster.h"
#include "tests/sim/config/sim_config.h"
#include "tests/sim/workloads/drawn_formats.h"

namespace covey::sim {
namespace {

constexpr uint32_t kGroupsMax = 3;
constexpr uint32_t kMembersMax = 4;
constexpr uint32_t kTablesMax = 3;
constexpr uint32_t kShardsMax = 3;
constexpr uint32_t kLateWorkersMax = 3;
// Includes late workers, and those that return.
constexpr uint32_t kElasticPositions = 10;
constexpr uint64_t kByProgramStream = 7;
constexpr uint64_t kAutotuneStream = 8;
constexpr uint64_t kValueFormatStream = 9;

Contract DrawContract(Random& random, uint32_t groups) {
  switch (random.Below(4)) {
    case 0:
      return {.kind = Contract::Kind::kBsp};
    case 1:
      return {.kind = Contract::Kind::kSsp, .staleness = random.Below(4)};
    case 2:
      return {.kind = Contract::Kind::kAsync};
    default:
      return {.kind = Contract::Kind::kBuffered, .buffer = random.Below(groups + 1)};
  }
}

worker::HybridOptions DrawHybrid(Random& random, bool distributed) {
  worker::HybridOptions options;
  if (distributed) options.synchronization = worker::Synchronization::kDistributed;
  options.lag = random.Chance(0.3) ? 1 : 0;
  if (random.Chance(0.5)) options.fusion.bucket_bytes = 0;
  options.error_feedback = worker::ErrorFeedback::kNever;
  return options;
}

worker::Communicator::Options DrawGroup(Random& random) {
  worker::Communicator::Options options;
  options.slice_bytes = size_t{64} << random.Below(6);
  if (random.Chance(0.3)) options.rendezvous = worker::RendezvousMode::kAgreed;
  if (random.Chance(0.7)) options.algorithm = kAlgorithms[random.Below(std::size(kAlgorithms))];
  return options;
}

// Up to half of the workers, in groups that admit and release members.
void DrawDrains(Random& random, GroupsPlan& plan) {
  if (!plan.elastic || !random.Chance(0.6)) return;
  const uint32_t workers =
      plan.groups * plan.members + static_cast<uint32_t>(plan.late_starts.size());
  if (workers < 2) return;
  const uint64_t count = 1 + random.Below(workers / 2);
  for (uint64_t i = 0; i < count; ++i) {
    plan.drains.push_back(
        {.rank = static_cast<uint32_t>(random.Below(workers)), .at = 0.1 + 0.8 * random.Uniform()});
  }
}

// In a share of the runs of one group. From a stream of its own, so that all others are as before.
void DrawByProgram(Random random, GroupsPlan& plan) {
  if (plan.groups > 1 || plan.distributed() || plan.elastic || !random.Chance(0.6)) return;
  plan.members = 2 + static_cast<uint32_t>(random.Below(kMembersMax - 1));
  plan.hybrid.synchronization = worker::Synchronization::kProgram;
  plan.hybrid.lag = 0;
  for (GroupsPlan::Table& table : plan.tables) table.contract = {.kind = Contract::Kind::kBsp};
}

// Servers send values of 2 bytes only, and only of tables whose pushes are applied one by one: such
// values are ones and zeros, which these formats keep, and the servers' checkers compare exactly.
void DrawValueFormat(const GroupsPlan& plan, Random& random, GroupsPlan::Table& table) {
  const bool servers_send = !plan.by_program() && !plan.distributed();
  if (!random.Chance(0.5) || (servers_send && !table.contract.AppliesOnArrival())) return;
  if (plan.distributed()) {
    table.value_format = kDrawnFormats[random.Below(std::size(kDrawnFormats))];
  } else {
    const bool is_half = servers_send && random.Chance(0.5);
    table.value_format = is_half ? WireFormat::kFloat16 : WireFormat::kBfloat16;
  }
}

absl::string_view ModeOf(const GroupsPlan& plan) {
  if (plan.by_program()) return "program";
  return plan.distributed() ? "distributed" : "centralized";
}

}  // namespace

uint32_t GroupsPlan::positions() const { return elastic ? kElasticPositions : groups; }

bool GroupsPlan::HasContract(Contract::Kind kind) const {
  return std::any_of(tables.begin(), tables.end(),
                     [kind](const Table& table) { return table.contract.kind == kind; });
}

bool GroupsPlan::HasFormat(WireFormat format) const {
  return std::any_of(tables.begin(), tables.end(),
                     [format](const Table& table) { return table.format == format; });
}

proto::TableSpec GroupsPlan::Spec(size_t table) const {
  proto::TableSpec spec;
  spec.set_name(absl::StrCat("tensor-", table));
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(tables[table].shards);
  spec.add_shape(elements());
  spec.mutable_learning_rate()->set_base(1);
  *spec.mutable_contract() = ContractToProto(tables[table].contract);
  spec.set_gradient_format(ToProto(tables[table].format));
  spec.set_value_format(ToProto(tables[table].value_format));
  spec.set_shard_bytes(elements() * sizeof(float));
  SetReplicas(tables[table].replicas, spec);
  return spec;
}

GroupsPlan DrawGroupsPlan(Random random) {
  GroupsPlan plan;
  const Random by_program = random.Split(kByProgramStream);
  Random autotune = random.Split(kAutotuneStream);
  Random value_format = random.Split(kValueFormatStream);
  plan.groups = 1 + static_cast<uint32_t>(random.Below(kGroupsMax));
  plan.members = 1 + static_cast<uint32_t>(random.Below(kMembersMax));
  const bool distributed = plan.groups == 1 && random.Chance(0.4);
  plan.elastic = !distributed && random.Chance(0.4);
  const uint64_t late = plan.elastic ? random.Below(kLateWorkersMax + 1) : 0;
  for (uint64_t i = 0; i < late; ++i) plan.late_starts.push_back(0.05 + 0.9 * random.Uniform());
  const uint64_t tables = 1 + random.Below(kTablesMax);
  for (uint64_t i = 0; i < tables; ++i) {
    GroupsPlan::Table& table = plan.tables.emplace_back();
    table.shards = 1 + static_cast<uint32_t>(random.Below(kShardsMax));
    table.contract =
        distributed ? Contract{.kind = Contract::Kind::kBsp} : DrawContract(random, plan.groups);
    if (random.Chance(0.4)) table.format = kDrawnFormats[random.Below(std::size(kDrawnFormats))];
    table.replicas = static_cast<uint32_t>(random.Below(4));
  }
  plan.ordinary_steps = 4 + random.Below(20);
  plan.samples = 1 + random.Below(8);
  plan.group = DrawGroup(random);
  plan.hybrid = DrawHybrid(random, distributed);
  plan.patience = DrawDuration(random, absl::Seconds(1), absl::Seconds(20));
  plan.haste = 0.1 + random.Uniform();
  plan.calm = random.Chance(0.7);
  constexpr double kShares[] = {0.1, 0.3, 1};
  plan.fault_share = kShares[random.Below(std::size(kShares))];
  DrawDrains(random, plan);
  plan.away = random.Chance(0.3);
  // The others hear of it from heartbeats.
  if (plan.away) plan.patience += absl::Seconds(3);
  DrawByProgram(by_program, plan);
  plan.hybrid.autotune = autotune.Chance(0.3);
  for (GroupsPlan::Table& table : plan.tables) DrawValueFormat(plan, value_format, table);
  return plan;
}

std::string Describe(const GroupsPlan& plan) {
  std::string tables;
  for (const GroupsPlan::Table& table : plan.tables) {
    absl::StrAppend(&tables, " ", table.shards, "x", ContractName(table.contract), "/",
                    WireFormatName(table.format), "/", WireFormatName(table.value_format), "/r",
                    table.replicas);
  }
  return absl::StrCat(
      "groups=", plan.groups, " members=", plan.members, " tables:", tables,
      " steps=", plan.ordinary_steps, " samples=", plan.samples, " mode=", ModeOf(plan),
      " lag=", plan.hybrid.lag, " fused=", plan.hybrid.fusion.bucket_bytes > 0,
      " autotune=", plan.hybrid.autotune, " slice=", plan.group.slice_bytes,
      " algorithm=", AlgorithmName(plan.group.algorithm),
      " measured=", plan.group.rendezvous == worker::RendezvousMode::kMeasured,
      " elastic=", plan.elastic, " late=", plan.late_starts.size(), " drains=", plan.drains.size(),
      " away=", plan.away, " calm=", plan.calm, " faults=", plan.fault_share,
      " patience=", absl::FormatDuration(plan.patience));
}

uint64_t SamplesOf(Random random, uint64_t all, uint32_t rank, uint32_t size) {
  uint64_t samples = 0;
  for (uint64_t i = 0; i < all; ++i) {
    if (random.Below(size) == rank) ++samples;
  }
  return samples;
}

}  // namespace covey::sim

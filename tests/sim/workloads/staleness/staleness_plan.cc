// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/staleness/staleness_plan.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/whole_cluster.h"
#include "tests/sim/config/sim_config.h"
#include "tests/sim/workloads/workload_names.h"

namespace covey::sim {
namespace {

constexpr uint32_t kGroupsMax = 4;
constexpr uint32_t kLateWorkersMax = 3;

Contract DrawContract(Random& random, uint32_t groups, absl::string_view kind) {
  if (kind.empty()) kind = kContractKinds[random.Below(std::size(kContractKinds))];
  if (kind == "bsp") return {.kind = Contract::Kind::kBsp};
  if (kind == "ssp") return {.kind = Contract::Kind::kSsp, .staleness = random.Below(4)};
  if (kind == "async") return {.kind = Contract::Kind::kAsync};
  if (kind == "local") {
    Contract contract{.kind = Contract::Kind::kLocal, .quorum = random.Below(groups + 1)};
    if (random.Chance(0.7)) contract.grace = absl::Milliseconds(1 + random.Below(2000));
    return contract;
  }
  // With more arrivals than groups, a group would wait forever once the others are done.
  Contract contract{.kind = Contract::Kind::kBuffered, .buffer = random.Below(groups + 1)};
  if (random.Chance(0.3)) contract.staleness_cut = 1 + random.Below(6);
  return contract;
}

std::vector<Contract> DrawSwitches(Random& random, uint32_t groups, const Contract& first) {
  std::vector<Contract> switches;
  if (first.kind == Contract::Kind::kLocal || !random.Chance(0.4)) return switches;
  const uint64_t count = 1 + random.Below(3);
  while (switches.size() < count) {
    const Contract contract = DrawContract(random, groups, "");
    if (contract.kind != Contract::Kind::kLocal) switches.push_back(contract);
  }
  return switches;
}

// Start times, as fractions of the fault phase.
std::vector<double> DrawLateStarts(Random& random) {
  std::vector<double> starts;
  const uint64_t count = random.Below(kLateWorkersMax + 1);
  for (uint64_t i = 0; i < count; ++i) starts.push_back(0.05 + 0.9 * random.Uniform());
  return starts;
}

bool HasCut(const Contract& contract) { return contract.staleness_cut != 0; }

}  // namespace

bool StalenessPlan::HasContract(Contract::Kind kind) const {
  return contract.kind == kind ||
         std::any_of(switches.begin(), switches.end(),
                     [kind](const Contract& other) { return other.kind == kind; });
}

bool StalenessPlan::waits_for_steps() const {
  return HasContract(Contract::Kind::kBsp) || HasContract(Contract::Kind::kLocal);
}

bool StalenessPlan::averages() const {
  return waits_for_steps() || HasContract(Contract::Kind::kBuffered);
}

bool StalenessPlan::discards() const {
  return HasCut(contract) || std::any_of(switches.begin(), switches.end(), HasCut);
}

proto::TableSpec StalenessPlan::Spec() const {
  proto::TableSpec spec;
  spec.set_name("steps");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(shards);
  spec.add_shape(elements());
  spec.mutable_learning_rate()->set_base(1);
  *spec.mutable_contract() = ContractToProto(contract);
  if (contract.kind == Contract::Kind::kLocal) {
    spec.mutable_inner_optimizer()->set_kind(proto::Optimizer::SGD);
    spec.mutable_inner_learning_rate()->set_base(1);
  }
  spec.set_shard_bytes(elements() * sizeof(float));
  SetReplicas(replicas, spec);
  return spec;
}

StalenessPlan DrawStalenessPlan(Random random, absl::string_view kind) {
  StalenessPlan plan;
  plan.groups = 2 + static_cast<uint32_t>(random.Below(kGroupsMax - 1));
  plan.shards = 1 + static_cast<uint32_t>(random.Below(4));
  plan.ordinary_steps = 6 + random.Below(40);
  plan.contract = DrawContract(random, plan.groups, kind);
  plan.switches = DrawSwitches(random, plan.groups, plan.contract);
  plan.elastic = random.Chance(0.7);
  if (plan.elastic) plan.late_starts = DrawLateStarts(random);
  plan.haste = 0.1 + random.Uniform();
  plan.deadline_max = DrawDuration(random, absl::Seconds(1), absl::Seconds(10));
  plan.replicas = static_cast<uint32_t>(random.Below(4));
  return plan;
}

std::string Describe(const StalenessPlan& plan) {
  return absl::StrCat("groups=", plan.groups, " shards=", plan.shards,
                      " steps=", plan.ordinary_steps, " replicas=", plan.replicas,
                      " contract=", ContractName(plan.contract), " elastic=", plan.elastic,
                      " late=", plan.late_starts.size());
}

}  // namespace covey::sim

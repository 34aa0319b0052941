// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_plan.h"

#include <array>

#include "absl/strings/str_cat.h"
#include "tests/sim/checkers/whole_cluster.h"
#include "tests/sim/config/sim_config.h"
#include "tests/sim/workloads/counting/counting_functions.h"
#include "tests/sim/workloads/counting/counting_momentum.h"

namespace covey::sim {

namespace {

// Of a shard.
constexpr uint64_t kElementsOfFunctions = 16;

}  // namespace

proto::TableSpec CountingPlan::Spec() const {
  proto::TableSpec spec;
  spec.set_name("counts");
  spec.set_data_type(proto::FLOAT32);
  if (sparse) {
    *spec.mutable_sparse() = life_cycle;
    spec.mutable_sparse()->set_width(static_cast<uint32_t>(slots()));
    spec.set_data_type(row_type);
  } else if (functions) {
    spec.add_shape(shards);
    spec.add_shape(kElementsOfFunctions);
    spec.set_shard_bytes(kElementsOfFunctions * sizeof(float));
    spec.mutable_initializer()->set_kind(proto::Initializer::CONSTANT);
    spec.mutable_initializer()->set_a(1);
    spec.mutable_optimizer()->set_kind(proto::Optimizer::VECTORS);
    spec.mutable_optimizer()->set_vectors(VectorsOf(slots()));
  } else {
    spec.add_shape(shards);
    spec.add_shape(slots());
    spec.set_shard_bytes(slots() * sizeof(float));
  }
  spec.mutable_learning_rate()->set_base(1);
  spec.mutable_contract()->set_kind(contract);
  if (contract == proto::Contract::BUFFERED) spec.mutable_contract()->set_buffer(arrivals);
  if (gated) spec.mutable_norm_gate()->set_factor(100);
  if (momentum) {
    spec.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
    spec.mutable_optimizer()->set_momentum(kMomentumOfTable);
  }
  SetReplicas(replicas, spec);
  return spec;
}

std::vector<float> CountingPlan::Gradient(uint64_t slot, uint32_t count) const {
  // An update is divided by its samples, one per arrival; so this gradient adds exactly 1.
  std::vector<float> gradient(count * slots());
  const float size = gated && IsWildSlot(slot) ? kWild : 1;
  for (uint32_t i = 0; i < count; ++i) {
    gradient[i * slots() + slot] = -size * static_cast<float>(arrivals);
  }
  return gradient;
}

CountingPlan DrawCountingPlan(Random random) {
  CountingPlan plan;
  plan.clients = 1 + static_cast<uint32_t>(random.Below(5));
  plan.shards = 1 + static_cast<uint32_t>(random.Below(6));
  plan.pushes = 40 + random.Below(300);
  plan.arrivals = random.Chance(0.5) ? 1 : 2 + random.Below(3);
  plan.replicas = static_cast<uint32_t>(random.Below(4));
  plan.contract = plan.arrivals > 1 ? proto::Contract::BUFFERED
                                    : std::array{proto::Contract::ASYNC, proto::Contract::SSP,
                                                 proto::Contract::BUFFERED}[random.Below(3)];
  plan.haste = 0.1 + random.Uniform();
  plan.deadline_max = DrawDuration(random, absl::Seconds(1), absl::Seconds(30));
  return plan;
}

proto::SparseRows DrawLifeCycle(Random random) {
  proto::SparseRows rows;
  if (random.Chance(0.5)) return rows;
  if (random.Chance(0.7)) {
    // The pushes hold some 300 keys, and an update holds up to 50.
    rows.set_rows_max(30 + random.Below(200));
    rows.set_when_full(std::array{proto::SparseRows::EVICT, proto::SparseRows::EVICT,
                                  proto::SparseRows::EVICT, proto::SparseRows::SKIP,
                                  proto::SparseRows::REFUSE}[random.Below(5)]);
    if (rows.when_full() == proto::SparseRows::EVICT) {
      rows.set_evict_by(static_cast<proto::EvictBy>(random.Below(3)));
    }
  }
  if (rows.rows_max() == 0 || random.Chance(0.4)) {
    rows.set_admit_after(static_cast<uint32_t>(2 + random.Below(3)));
  }
  if (random.Chance(0.2)) rows.set_admit_probability(0.3 + 0.6 * random.Uniform());
  return rows;
}

proto::DataType DrawRowType(Random random) {
  return std::array{proto::FLOAT32, proto::FLOAT32, proto::BFLOAT16,
                    proto::FLOAT16}[random.Below(4)];
}

std::string Describe(const CountingPlan& plan) {
  return absl::StrCat(plan.sparse ? "sparse " : "", plan.functions ? "functions " : "",
                      plan.gated ? "gated " : "", plan.momentum ? "momentum " : "",
                      "clients=", plan.clients, " shards=", plan.shards,
                      " arrivals=", plan.arrivals, " replicas=", plan.replicas,
                      " contract=", proto::Contract::Kind_Name(plan.contract),
                      plan.sparse ? absl::StrCat(" rows={", plan.life_cycle.ShortDebugString(),
                                                 "} ", proto::DataType_Name(plan.row_type))
                                  : "");
}

}  // namespace covey::sim

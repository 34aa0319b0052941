// A table that the scheduler creates must be one that a server can open: or every push to it fails.

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "common/base/random.h"
#include "common/base/status_macros.h"
#include "common/contract/contract.h"
#include "common/optimizer/definition.h"
#include "scheduler/tables/table_spec.h"
#include "server/table/dense_shard.h"
#include "server/table/spare_buffers.h"
#include "server/table/table_spec.h"

namespace covey {
namespace {

constexpr int kSpecs = 30000;

double Number(Random& random) {
  constexpr std::array<double, 13> kNumbers = {0,
                                               -1,
                                               1,
                                               0.5,
                                               0.999,
                                               1e-12,
                                               1e-13,
                                               1e-300,
                                               1000,
                                               1001,
                                               -0.0,
                                               std::numeric_limits<double>::infinity(),
                                               std::numeric_limits<double>::quiet_NaN()};
  return kNumbers[random.Below(kNumbers.size())];
}

// Most fields at their default, or nothing would ever pass.
proto::Optimizer RandomOptimizer(Random& random) {
  proto::Optimizer optimizer;
  optimizer.set_kind(static_cast<proto::Optimizer::Kind>(random.Below(10)));
  if (random.Chance(0.2)) optimizer.set_momentum(Number(random));
  if (random.Chance(0.2)) optimizer.set_beta1(Number(random));
  if (random.Chance(0.2)) optimizer.set_beta2(Number(random));
  if (random.Chance(0.2)) optimizer.set_epsilon(Number(random));
  if (random.Chance(0.2)) optimizer.set_weight_decay(Number(random));
  if (random.Chance(0.2)) optimizer.set_trust_coefficient(Number(random));
  if (random.Chance(0.2)) optimizer.set_delay(static_cast<uint32_t>(random.Below(5000)));
  return optimizer;
}

proto::LearningRate RandomRate(Random& random) {
  proto::LearningRate rate;
  rate.set_base(Number(random));
  rate.set_warmup_samples(random.Below(3));
  rate.set_decay(static_cast<proto::LearningRate::Decay>(random.Below(5)));
  rate.set_decay_samples(random.Below(3));
  if (random.Chance(0.5)) rate.set_decay_factor(Number(random));
  return rate;
}

proto::Contract RandomContract(Random& random) {
  proto::Contract contract;
  contract.set_kind(static_cast<proto::Contract::Kind>(random.Below(7)));
  contract.set_staleness(random.Below(3));
  contract.set_buffer(random.Chance(0.5) ? random.Below(10000) : 0);
  contract.set_staleness_cut(random.Below(3));
  contract.set_local_steps(random.Below(4));
  contract.set_quorum(random.Below(3));
  contract.set_grace_ms(random.Chance(0.1) ? 4'000'000 : 500);
  contract.set_overlap_steps(random.Below(3));
  return contract;
}

proto::TableSpec RandomSpec(Random& random) {
  proto::TableSpec spec;
  spec.set_name("table");
  spec.set_data_type(static_cast<proto::DataType>(1 + random.Below(2) / 2));
  spec.add_shape(16);
  proto::Initializer& initializer = *spec.mutable_initializer();
  initializer.set_kind(static_cast<proto::Initializer::Kind>(random.Below(5)));
  initializer.set_a(static_cast<float>(Number(random)));
  initializer.set_b(static_cast<float>(Number(random)));
  *spec.mutable_optimizer() = RandomOptimizer(random);
  *spec.mutable_learning_rate() = RandomRate(random);
  *spec.mutable_contract() = RandomContract(random);
  proto::Asynchrony& asynchrony = *spec.mutable_asynchrony();
  if (random.Chance(0.2)) asynchrony.set_delay_compensation(Number(random));
  asynchrony.set_staleness_scaled_rate(random.Chance(0.2));
  asynchrony.set_automatic_momentum(random.Chance(0.2));
  if (spec.contract().kind() == proto::Contract::LOCAL && random.Chance(0.5)) {
    // One half in order, or the other would never be looked at.
    spec.clear_initializer();
    spec.clear_optimizer();
    spec.clear_asynchrony();
    spec.clear_learning_rate();
    spec.mutable_learning_rate()->set_base(1);
    spec.mutable_contract()->set_local_steps(5);
  }
  // What LOCAL needs and the others refuse; sometimes the wrong way round.
  if (random.Chance(0.9) == (spec.contract().kind() == proto::Contract::LOCAL)) {
    *spec.mutable_inner_optimizer() = RandomOptimizer(random);
    *spec.mutable_inner_learning_rate() = RandomRate(random);
  }
  spec.set_gradient_format(static_cast<proto::WireFormat>(random.Below(5)));
  spec.set_non_finite(static_cast<proto::NonFinitePolicy>(random.Below(3)));
  return spec;
}

// What a worker makes of the inner half of a LOCAL table.
absl::Status MakeInner(const proto::TableSpec& spec) {
  COVEY_ASSIGN_OR_RETURN(const OptimizerConfig config, OptimizerFromProto(spec.inner_optimizer()));
  COVEY_RETURN_IF_ERROR(MakeOptimizer(config).status());
  COVEY_ASSIGN_OR_RETURN(const LearningRateConfig rate,
                         LearningRateFromProto(spec.inner_learning_rate()));
  return rate.Validate();
}

TEST(TableSpecAgreementTest, WhatTheSchedulerCreatesServersAndWorkersOpen) {
  Random random(20261120);
  int created = 0;
  int local = 0;
  for (int i = 0; i < kSpecs; ++i) {
    const proto::TableSpec spec = RandomSpec(random);
    if (!scheduler::ValidateTableSpec(spec).ok()) continue;
    ++created;
    proto::Table table;
    *table.mutable_spec() = spec;
    proto::Shard& shard = *table.add_shards();
    shard.set_element_count(16);
    const auto rules = server::RulesOf(table, shard);
    ASSERT_TRUE(rules.ok()) << rules.status() << "\n" << spec.DebugString();
    server::SpareBuffers spares(1 << 20);
    const auto opened = server::DenseShard::Create(rules->shard, spares);
    ASSERT_TRUE(opened.ok()) << opened.status() << "\n" << spec.DebugString();
    if (spec.contract().kind() != proto::Contract::LOCAL) continue;
    ++local;
    ASSERT_TRUE(MakeInner(spec).ok()) << MakeInner(spec) << "\n" << spec.DebugString();
  }
  EXPECT_GT(created, kSpecs / 200) << "too few specs pass for this to say anything";
  EXPECT_GT(local, 10) << "too few LOCAL specs pass for this to say anything";
}

// What the scheduler puts in force, a server follows.
TEST(TableSpecAgreementTest, WhatTheSchedulerSwitchesToAServerKnows) {
  Random random(7);
  int switched = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto contract = ContractFromProto(RandomContract(random));
    if (!contract.ok()) continue;
    ++switched;
    proto::Table table;
    table.mutable_spec()->set_data_type(proto::FLOAT32);
    table.mutable_spec()->mutable_learning_rate()->set_base(1);
    *table.mutable_contract() = ContractToProto(*contract);
    const auto rules = server::RulesOf(table, proto::Shard());
    ASSERT_TRUE(rules.ok()) << rules.status();
    EXPECT_EQ(rules->contract, *contract);
  }
  EXPECT_GT(switched, 500);
}

}  // namespace
}  // namespace covey

// A table that the scheduler creates must be one that a server can open: or every push to it fails.

#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "common/base/random.h"
#include "scheduler/table_spec.h"
#include "server/table/dense_shard.h"
#include "server/table/spare_buffers.h"
#include "server/table_spec.h"

namespace covey {
namespace {

constexpr int kSpecs = 20000;

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

proto::TableSpec RandomSpec(Random& random) {
  proto::TableSpec spec;
  spec.set_name("table");
  spec.set_data_type(static_cast<proto::DataType>(1 + random.Below(2) / 2));
  spec.add_shape(16);
  proto::Initializer& initializer = *spec.mutable_initializer();
  initializer.set_kind(static_cast<proto::Initializer::Kind>(random.Below(5)));
  initializer.set_a(static_cast<float>(Number(random)));
  initializer.set_b(static_cast<float>(Number(random)));
  proto::Optimizer& optimizer = *spec.mutable_optimizer();
  optimizer.set_kind(static_cast<proto::Optimizer::Kind>(random.Below(10)));
  // Most fields at their default, or nothing would ever pass.
  if (random.Chance(0.2)) optimizer.set_momentum(Number(random));
  if (random.Chance(0.2)) optimizer.set_beta1(Number(random));
  if (random.Chance(0.2)) optimizer.set_beta2(Number(random));
  if (random.Chance(0.2)) optimizer.set_epsilon(Number(random));
  if (random.Chance(0.2)) optimizer.set_weight_decay(Number(random));
  if (random.Chance(0.2)) optimizer.set_trust_coefficient(Number(random));
  if (random.Chance(0.2)) optimizer.set_delay(static_cast<uint32_t>(random.Below(5000)));
  proto::Asynchrony& asynchrony = *spec.mutable_asynchrony();
  if (random.Chance(0.2)) asynchrony.set_delay_compensation(Number(random));
  asynchrony.set_staleness_scaled_rate(random.Chance(0.2));
  asynchrony.set_automatic_momentum(random.Chance(0.2));
  proto::LearningRate& rate = *spec.mutable_learning_rate();
  rate.set_base(Number(random));
  rate.set_warmup_samples(random.Below(3));
  rate.set_decay(static_cast<proto::LearningRate::Decay>(random.Below(5)));
  rate.set_decay_samples(random.Below(3));
  if (random.Chance(0.5)) rate.set_decay_factor(Number(random));
  proto::Contract& contract = *spec.mutable_contract();
  contract.set_kind(static_cast<proto::Contract::Kind>(random.Below(7)));
  contract.set_staleness(random.Below(3));
  contract.set_buffer(random.Chance(0.5) ? random.Below(10000) : 0);
  spec.set_non_finite(static_cast<proto::NonFinitePolicy>(random.Below(3)));
  return spec;
}

TEST(TableSpecAgreementTest, WhatTheSchedulerCreatesAServerOpens) {
  Random random(20261120);
  int created = 0;
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
  }
  EXPECT_GT(created, kSpecs / 200) << "too few specs pass for this to say anything";
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/table/definition.h"

#include <array>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

proto::TableSpec Spec() {
  proto::TableSpec spec;
  spec.set_name("weights");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(5);
  spec.add_shape(10);
  spec.mutable_contract()->set_kind(proto::Contract::BUFFERED);
  spec.mutable_learning_rate()->set_base(0.5);
  return spec;
}

proto::TableSpec LocalSpec() {
  proto::TableSpec spec = Spec();
  spec.mutable_contract()->set_kind(proto::Contract::LOCAL);
  spec.mutable_contract()->set_local_steps(8);
  spec.mutable_inner_optimizer()->set_kind(proto::Optimizer::ADAMW);
  spec.mutable_inner_learning_rate()->set_base(0.25);
  return spec;
}

TableDefinition MustParse(const proto::TableSpec& spec) {
  auto definition = TableDefinition::Parse(spec);
  EXPECT_TRUE(definition.ok()) << definition.status();
  return definition.value_or(TableDefinition());
}

TEST(TableDefinitionTest, FillsInDefaults) {
  proto::TableSpec spec = Spec();
  proto::Optimizer& optimizer = *spec.mutable_optimizer();
  optimizer.set_kind(proto::Optimizer::ADAM);
  const TableDefinition definition = MustParse(spec);
  EXPECT_EQ(definition.name, "weights");
  EXPECT_EQ(definition.elements, 50u);
  EXPECT_TRUE(definition.refuses_non_finite);
  EXPECT_EQ(definition.contract, (Contract{.kind = Contract::Kind::kBuffered}));
  EXPECT_EQ(definition.optimizer.beta1, 0.9);
  EXPECT_EQ(definition.optimizer.beta2, 0.999);
  EXPECT_EQ(definition.optimizer.epsilon, 1e-8);
  EXPECT_EQ(definition.learning_rate.base_rate, 0.5);
  EXPECT_FALSE(definition.inner.has_value());
  EXPECT_EQ(definition.gradient_format, WireFormat::kFloat32);
  EXPECT_EQ(definition.value_format, WireFormat::kFloat32);
  optimizer.set_kind(proto::Optimizer::ADAGRAD);
  EXPECT_EQ(MustParse(spec).optimizer.epsilon, 1e-10);
  optimizer.set_epsilon(1e-3);
  EXPECT_EQ(MustParse(spec).optimizer.epsilon, 1e-3);
}

TEST(TableDefinitionTest, KeepsWhatIsSaid) {
  proto::TableSpec spec = Spec();
  spec.set_non_finite(proto::ACCEPT);
  spec.set_gradient_format(proto::WIRE_INT8_BLOCK);
  spec.set_value_format(proto::WIRE_BFLOAT16);
  spec.mutable_contract()->set_kind(proto::Contract::SSP);
  spec.mutable_contract()->set_staleness(3);
  spec.mutable_initializer()->set_kind(proto::Initializer::NORMAL);
  spec.mutable_initializer()->set_b(2);
  spec.mutable_initializer()->set_seed(11);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
  spec.mutable_optimizer()->set_momentum(0.75);
  spec.mutable_asynchrony()->set_automatic_momentum(true);
  spec.mutable_asynchrony()->set_delay_compensation(0.5);
  proto::LearningRate& rate = *spec.mutable_learning_rate();
  rate.set_decay(proto::LearningRate::COSINE);
  rate.set_decay_samples(1000);
  const TableDefinition definition = MustParse(spec);
  EXPECT_FALSE(definition.refuses_non_finite);
  EXPECT_EQ(definition.gradient_format, WireFormat::kInt8Block);
  EXPECT_EQ(definition.value_format, WireFormat::kBfloat16);
  EXPECT_EQ(definition.contract, (Contract{.kind = Contract::Kind::kSsp, .staleness = 3}));
  EXPECT_EQ(definition.initializer.kind, InitializerKind::kNormal);
  EXPECT_EQ(definition.initializer.b, 2);
  EXPECT_EQ(definition.initializer.seed, 11u);
  EXPECT_EQ(definition.asynchrony.target_momentum, 0.75);
  EXPECT_EQ(definition.asynchrony.delay_compensation, 0.5);
  EXPECT_FALSE(definition.asynchrony.scales_rate);
  EXPECT_EQ(definition.learning_rate.decay, Decay::kCosine);
  EXPECT_EQ(definition.learning_rate.decay_samples, 1000u);
}

TEST(TableDefinitionTest, LocalTablesHaveInnerSteps) {
  const TableDefinition definition = MustParse(LocalSpec());
  ASSERT_TRUE(definition.inner.has_value());
  EXPECT_EQ(definition.inner->optimizer.kind, OptimizerKind::kAdamW);
  EXPECT_EQ(definition.inner->learning_rate.base_rate, 0.25);
  EXPECT_EQ(definition.optimizer.kind, OptimizerKind::kSgd);
}

TEST(TableDefinitionTest, RoundsEndInTheMeanUnlessTheSpecSaysOtherwise) {
  proto::TableSpec spec = LocalSpec();
  spec.clear_optimizer();
  spec.clear_learning_rate();
  EXPECT_EQ(TableDefinition::Parse(spec)->optimizer.kind, OptimizerKind::kSgd);
  EXPECT_EQ(TableDefinition::Parse(spec)->learning_rate.base_rate, 1);
  spec.mutable_learning_rate()->set_base(0.7);
  EXPECT_EQ(TableDefinition::Parse(spec)->learning_rate.base_rate, 0.7);
}

TEST(TableDefinitionTest, TheContractInForceCountsNotTheOneAtCreation) {
  proto::Table table;
  *table.mutable_spec() = Spec();
  const Contract buffered{.kind = Contract::Kind::kBuffered};
  EXPECT_EQ(TableDefinition::InForce(table)->contract, buffered);
  table.mutable_contract()->set_kind(proto::Contract::ASYNC);
  EXPECT_EQ(TableDefinition::InForce(table)->contract.kind, Contract::Kind::kAsync);
  EXPECT_EQ(TableDefinition::Parse(table.spec())->contract, buffered);
  for (const int unfit : {99, static_cast<int>(proto::Contract::LOCAL)}) {
    table.mutable_contract()->set_kind(static_cast<proto::Contract::Kind>(unfit));
    table.mutable_contract()->set_local_steps(8);
    const absl::Status status = TableDefinition::InForce(table).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << unfit;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("table 'weights'")) << unfit;
  }
}

TEST(TableDefinitionTest, RefusesTheUnknownAndTheReserved) {
  const std::vector<std::function<void(proto::TableSpec&)>> spoil = {
      [](proto::TableSpec& spec) { spec.clear_data_type(); },
      [](proto::TableSpec& spec) { spec.clear_contract(); },
      [](proto::TableSpec& spec) { spec.mutable_contract()->set_kind(proto::Contract::LOCAL); },
      [](proto::TableSpec& spec) { spec.mutable_contract()->set_buffer(kBufferedArrivalsMax + 1); },
      [](proto::TableSpec& spec) { spec.set_gradient_format(static_cast<proto::WireFormat>(99)); },
      [](proto::TableSpec& spec) { spec.set_durability(static_cast<proto::Durability>(99)); },
      [](proto::TableSpec& spec) {
        spec.mutable_optimizer()->set_kind(static_cast<proto::Optimizer::Kind>(99));
      },
      [](proto::TableSpec& spec) {
        spec.mutable_initializer()->set_kind(static_cast<proto::Initializer::Kind>(99));
      },
      [](proto::TableSpec& spec) {
        spec.mutable_learning_rate()->set_decay(static_cast<proto::LearningRate::Decay>(99));
      },
      [](proto::TableSpec& spec) { spec.set_non_finite(static_cast<proto::NonFinitePolicy>(99)); },
  };
  for (size_t i = 0; i < spoil.size(); ++i) {
    proto::TableSpec spec = Spec();
    spoil[i](spec);
    const absl::Status status = TableDefinition::Parse(spec).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << i;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("table 'weights'")) << i;
  }
}

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

// Most fields have their defaults, otherwise almost no spec would be valid.
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
  spec.set_data_type(static_cast<proto::DataType>(random.Chance(0.8) ? 1 : random.Below(5)));
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
    // One half is valid, otherwise the other half would never be reached.
    spec.clear_initializer();
    spec.clear_optimizer();
    spec.clear_asynchrony();
    spec.clear_learning_rate();
    spec.mutable_learning_rate()->set_base(1);
    spec.mutable_contract()->set_local_steps(5);
  }
  // Fields that LOCAL needs and other contracts refuse; sometimes the wrong way round.
  if (random.Chance(0.9) == (spec.contract().kind() == proto::Contract::LOCAL)) {
    *spec.mutable_inner_optimizer() = RandomOptimizer(random);
    *spec.mutable_inner_learning_rate() = RandomRate(random);
  }
  spec.set_gradient_format(static_cast<proto::WireFormat>(random.Below(5)));
  spec.set_non_finite(static_cast<proto::NonFinitePolicy>(random.Below(3)));
  return spec;
}

// Shards and members are made from a definition, so everything in it must be valid.
TEST(TableDefinitionTest, HoldsOnlyWhatOptimizersAndSchedulesTake) {
  Random random(20261120);
  int parsed = 0;
  int local = 0;
  for (int i = 0; i < kSpecs; ++i) {
    const proto::TableSpec spec = RandomSpec(random);
    const auto definition = TableDefinition::Parse(spec);
    if (!definition.ok()) continue;
    ++parsed;
    ASSERT_TRUE(definition->initializer.Validate().ok()) << spec.DebugString();
    ASSERT_TRUE(MakeOptimizer(definition->optimizer).ok()) << spec.DebugString();
    ASSERT_TRUE(definition->learning_rate.Validate().ok()) << spec.DebugString();
    const bool is_local = definition->contract.kind == Contract::Kind::kLocal;
    ASSERT_EQ(definition->inner.has_value(), is_local) << spec.DebugString();
    if (!is_local) continue;
    ++local;
    ASSERT_TRUE(MakeOptimizer(definition->inner->optimizer).ok()) << spec.DebugString();
    ASSERT_TRUE(definition->inner->learning_rate.Validate().ok()) << spec.DebugString();
  }
  EXPECT_GT(parsed, kSpecs / 200) << "too few specs pass for this to say anything";
  EXPECT_GT(local, 10) << "too few LOCAL specs pass for this to say anything";
}

// A server can read every contract that the scheduler puts in force.
TEST(TableDefinitionTest, ReadsEveryContractThatATableIsSwitchedTo) {
  Random random(7);
  int switched = 0;
  for (int i = 0; i < 2000; ++i) {
    const auto contract = ContractFromProto(RandomContract(random));
    if (!contract.ok()) continue;
    ++switched;
    proto::Table table;
    *table.mutable_spec() = Spec();
    if (contract->kind == Contract::Kind::kLocal) *table.mutable_spec() = LocalSpec();
    *table.mutable_contract() = ContractToProto(*contract);
    const auto definition = TableDefinition::InForce(table);
    ASSERT_TRUE(definition.ok()) << definition.status();
    EXPECT_EQ(definition->contract, *contract);
  }
  EXPECT_GT(switched, 500);
}

}  // namespace
}  // namespace covey

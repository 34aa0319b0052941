#include "server/table/table_spec.h"

#include <functional>
#include <vector>

#include "common/cluster/limits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey::server {
namespace {

proto::Table Table() {
  proto::Table table;
  table.mutable_spec()->set_name("weights");
  table.mutable_spec()->set_data_type(proto::FLOAT32);
  table.mutable_spec()->mutable_contract()->set_kind(proto::Contract::BUFFERED);
  table.mutable_spec()->mutable_learning_rate()->set_base(0.5);
  return table;
}

proto::Shard Shard() {
  proto::Shard shard;
  shard.set_first_element(100);
  shard.set_element_count(50);
  return shard;
}

TEST(TableSpec, FillsInDefaults) {
  proto::Table table = Table();
  proto::Optimizer& optimizer = *table.mutable_spec()->mutable_optimizer();
  optimizer.set_kind(proto::Optimizer::ADAM);
  auto rules = RulesOf(table, Shard());
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_TRUE(rules->refuses_non_finite);
  EXPECT_EQ(rules->contract, (Contract{.kind = Contract::Kind::kBuffered}));
  EXPECT_EQ(rules->shard.first_element, 100u);
  EXPECT_EQ(rules->shard.element_count, 50u);
  EXPECT_EQ(rules->shard.optimizer.beta1, 0.9);
  EXPECT_EQ(rules->shard.optimizer.beta2, 0.999);
  EXPECT_EQ(rules->shard.optimizer.epsilon, 1e-8);
  EXPECT_EQ(rules->shard.learning_rate.base_rate, 0.5);
  optimizer.set_kind(proto::Optimizer::ADAGRAD);
  EXPECT_EQ(RulesOf(table, Shard())->shard.optimizer.epsilon, 1e-10);
  optimizer.set_epsilon(1e-3);
  EXPECT_EQ(RulesOf(table, Shard())->shard.optimizer.epsilon, 1e-3);
}

TEST(TableSpec, KeepsWhatIsSaid) {
  proto::Table table = Table();
  table.mutable_spec()->set_non_finite(proto::ACCEPT);
  table.mutable_spec()->mutable_contract()->set_kind(proto::Contract::SSP);
  table.mutable_spec()->mutable_contract()->set_staleness(3);
  table.mutable_spec()->mutable_initializer()->set_kind(proto::Initializer::NORMAL);
  table.mutable_spec()->mutable_initializer()->set_seed(11);
  proto::LearningRate& rate = *table.mutable_spec()->mutable_learning_rate();
  rate.set_decay(proto::LearningRate::COSINE);
  rate.set_decay_samples(1000);
  const auto rules = RulesOf(table, Shard());
  ASSERT_TRUE(rules.ok()) << rules.status();
  EXPECT_FALSE(rules->refuses_non_finite);
  EXPECT_EQ(rules->contract, (Contract{.kind = Contract::Kind::kSsp, .staleness = 3}));
  EXPECT_EQ(rules->shard.initializer.kind, InitializerKind::kNormal);
  EXPECT_EQ(rules->shard.initializer.seed, 11u);
  EXPECT_EQ(rules->shard.learning_rate.decay, Decay::kCosine);
  EXPECT_EQ(rules->shard.learning_rate.decay_samples, 1000u);
}

TEST(TableSpec, RefusesTheUnknownAndTheReserved) {
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
    proto::Table table = Table();
    spoil[i](*table.mutable_spec());
    const absl::Status status = RulesOf(table, Shard()).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << i;
    EXPECT_THAT(std::string(status.message()), ::testing::HasSubstr("table=weights")) << i;
  }
}

}  // namespace
}  // namespace covey::server

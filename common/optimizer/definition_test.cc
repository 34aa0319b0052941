// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/definition.h"

#include <string>

#include "common/optimizer/row_optimizer.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

TEST(DefinitionTest, FillsInDefaults) {
  proto::Optimizer optimizer;
  optimizer.set_kind(proto::Optimizer::LAMB);
  auto config = OptimizerFromProto(optimizer);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->beta1, 0.9);
  EXPECT_EQ(config->beta2, 0.999);
  EXPECT_EQ(config->epsilon, 1e-8);
  EXPECT_EQ(config->trust_coefficient, 0.001);
  EXPECT_EQ(config->delay, 1u);
  EXPECT_EQ(config->momentum, 0);  // the user's value, even though it is 0
  optimizer.set_kind(proto::Optimizer::ADAGRAD);
  EXPECT_EQ(OptimizerFromProto(optimizer)->epsilon, 1e-10);
}

TEST(DefinitionTest, KeepsWhatIsSaid) {
  proto::Optimizer optimizer;
  optimizer.set_momentum(0.5);
  optimizer.set_beta1(0.25);
  optimizer.set_beta2(0.75);
  optimizer.set_epsilon(1e-3);
  optimizer.set_weight_decay(0.1);
  optimizer.set_trust_coefficient(0.02);
  optimizer.set_delay(7);
  const auto config = OptimizerFromProto(optimizer);
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->momentum, 0.5);
  EXPECT_EQ(config->beta1, 0.25);
  EXPECT_EQ(config->beta2, 0.75);
  EXPECT_EQ(config->epsilon, 1e-3);
  EXPECT_EQ(config->weight_decay, 0.1);
  EXPECT_EQ(config->trust_coefficient, 0.02);
  EXPECT_EQ(config->delay, 7u);

  proto::LearningRate rate;
  rate.set_base(0.5);
  rate.set_warmup_samples(3);
  rate.set_decay(proto::LearningRate::COSINE);
  rate.set_decay_samples(1000);
  rate.set_decay_factor(0.1);
  const auto schedule = LearningRateFromProto(rate);
  ASSERT_TRUE(schedule.ok()) << schedule.status();
  EXPECT_EQ(schedule->base_rate, 0.5);
  EXPECT_EQ(schedule->warmup_samples, 3u);
  EXPECT_EQ(schedule->decay, Decay::kCosine);
  EXPECT_EQ(schedule->decay_samples, 1000u);
  EXPECT_EQ(schedule->decay_factor, 0.1);
}

// The optimizer of every kind in the protocol can be made, under its own name.
TEST(DefinitionTest, KnowsEveryKindOfTheProtocol) {
  for (int kind = 0; kind < proto::Optimizer::Kind_ARRAYSIZE; ++kind) {
    proto::Optimizer optimizer;
    optimizer.set_kind(static_cast<proto::Optimizer::Kind>(kind));
    const auto config = OptimizerFromProto(optimizer);
    ASSERT_TRUE(config.ok()) << config.status();
    EXPECT_EQ(MakeOptimizer(*config).ok(), !NeedsRows(config->kind));
    EXPECT_TRUE(MakeOptimizer(*config).ok() || RowOptimizer::Create(*config, 4).ok());
    std::string name = proto::Optimizer::Kind_Name(optimizer.kind());
    for (char& c : name) c = c == '_' ? '_' : static_cast<char>(c - 'A' + 'a');
    EXPECT_EQ(OptimizerName(config->kind), name);
  }
}

TEST(DefinitionTest, RefusesTheUnknown) {
  proto::Optimizer optimizer;
  optimizer.set_kind(static_cast<proto::Optimizer::Kind>(99));
  EXPECT_EQ(OptimizerFromProto(optimizer).status().code(), absl::StatusCode::kInvalidArgument);
  proto::LearningRate rate;
  rate.set_decay(static_cast<proto::LearningRate::Decay>(99));
  EXPECT_EQ(LearningRateFromProto(rate).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/feature_tables.h"

#include "gtest/gtest.h"

namespace covey::factorization {
namespace {

TEST(FeatureTablesTest, ServersHaveTheOptimizerWhereEachStepIsPushed) {
  const proto::TableSpec weights =
      WeightsSpec({.optimizer = Optimizer::kFtrl, .learning_rate = 0.5, .l1 = 3}, 4);
  EXPECT_EQ(weights.sparse().width(), 1u);
  EXPECT_EQ(weights.optimizer().kind(), proto::Optimizer::FTRL);
  EXPECT_EQ(weights.optimizer().l1(), 3);
  EXPECT_EQ(weights.learning_rate().base(), 0.5);
  const proto::TableSpec factors = FactorsSpec({.factors = 8, .admit_after = 5, .seed = 7}, 4);
  EXPECT_EQ(factors.sparse().width(), 8u);
  EXPECT_EQ(factors.sparse().admit_after(), 5u);
  EXPECT_EQ(factors.optimizer().kind(), proto::Optimizer::ADAGRAD);
  EXPECT_EQ(factors.learning_rate().base(), Options().learning_rate);
  EXPECT_EQ(factors.initializer().seed(), 7u);
  EXPECT_FALSE(factors.has_inner_optimizer());
}

TEST(FeatureTablesTest, InRoundsWorkersHaveItAndServersTheMean) {
  Options options{.contract = {.kind = Contract::Kind::kLocal, .local_steps = 8},
                  .learning_rate = 0.5};
  for (const proto::TableSpec& spec : {WeightsSpec(options, 4), FactorsSpec(options, 4)}) {
    EXPECT_EQ(spec.inner_optimizer().kind(), proto::Optimizer::ADAGRAD);
    EXPECT_EQ(spec.inner_learning_rate().base(), 0.5);
    EXPECT_EQ(spec.optimizer().kind(), proto::Optimizer::SGD);
    EXPECT_EQ(spec.learning_rate().base(), 2);
    EXPECT_EQ(spec.sparse().round_mean(), proto::SparseRows::OF_ALL_PUSHES);
  }
  options.round_mean = RoundMean::kOfHolders;
  for (const proto::TableSpec& spec : {WeightsSpec(options, 4), FactorsSpec(options, 4)}) {
    EXPECT_EQ(spec.learning_rate().base(), 1);
    EXPECT_EQ(spec.sparse().round_mean(), proto::SparseRows::OF_HOLDERS);
  }
}

}  // namespace
}  // namespace covey::factorization

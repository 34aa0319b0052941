// SPDX-License-Identifier: Apache-2.0
#include "common/table/spec_checks.h"

#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace covey {
namespace {

proto::TableSpec Good() {
  proto::TableSpec spec;
  spec.set_name("layer-1/weights_0.5");
  spec.set_data_type(proto::FLOAT32);
  spec.add_shape(784);
  spec.add_shape(128);
  spec.mutable_learning_rate()->set_base(0.1);
  spec.mutable_contract()->set_kind(proto::Contract::BUFFERED);
  return spec;
}

proto::TableSpec Local() {
  proto::TableSpec spec = Good();
  spec.mutable_contract()->set_kind(proto::Contract::LOCAL);
  spec.mutable_contract()->set_local_steps(16);
  spec.mutable_contract()->set_quorum(2);
  spec.mutable_contract()->set_grace_ms(500);
  spec.mutable_contract()->set_overlap_steps(15);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::DELAYED_NESTEROV);
  spec.mutable_optimizer()->set_momentum(0.9);
  spec.mutable_optimizer()->set_delay(4);
  spec.mutable_inner_optimizer()->set_kind(proto::Optimizer::ADAMW);
  spec.mutable_inner_learning_rate()->set_base(4e-4);
  spec.set_gradient_format(proto::WIRE_BFLOAT16);
  return spec;
}

TEST(SpecChecksTest, GoodSpecsPass) {
  EXPECT_TRUE(CheckTableSpec(Local()).ok()) << CheckTableSpec(Local());
  EXPECT_TRUE(CheckTableSpec(Good()).ok());
  proto::TableSpec adam = Good();
  adam.mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
  adam.mutable_optimizer()->set_beta1(0.9);
  adam.mutable_learning_rate()->set_decay(proto::LearningRate::COSINE);
  adam.mutable_learning_rate()->set_decay_samples(1000);
  adam.mutable_contract()->set_kind(proto::Contract::SSP);
  adam.set_shard_bytes(1 << 20);
  EXPECT_TRUE(CheckTableSpec(adam).ok());
  proto::TableSpec gated = adam;
  gated.mutable_norm_gate()->set_factor(20);
  EXPECT_TRUE(CheckTableSpec(gated).ok());
  gated.mutable_norm_gate()->set_quarantine_after(8);
  EXPECT_TRUE(CheckTableSpec(gated).ok());
  proto::TableSpec governed = Good();
  governed.mutable_optimizer()->set_kind(proto::Optimizer::LARS);
  governed.mutable_optimizer()->set_momentum(0.9);
  governed.mutable_optimizer()->set_trust_coefficient(0.02);
  governed.mutable_asynchrony()->set_automatic_momentum(true);
  governed.mutable_asynchrony()->set_delay_compensation(0.04);
  EXPECT_TRUE(CheckTableSpec(governed).ok()) << CheckTableSpec(governed);
}

proto::TableSpec OfVectors() {
  proto::TableSpec spec = Good();
  spec.mutable_optimizer()->set_kind(proto::Optimizer::VECTORS);
  spec.mutable_optimizer()->set_vectors(64);
  spec.mutable_contract()->set_kind(proto::Contract::ASYNC);
  return spec;
}

TEST(SpecChecksTest, TablesOfVectors) {
  EXPECT_TRUE(CheckTableSpec(OfVectors()).ok()) << CheckTableSpec(OfVectors());
  const auto refusal = [](auto change) {
    proto::TableSpec spec = OfVectors();
    change(spec);
    return std::string(CheckTableSpec(spec).message());
  };
  EXPECT_THAT(refusal([](proto::TableSpec& s) { s.mutable_optimizer()->set_vectors(0); }),
              testing::HasSubstr("optimizer.vectors = 0"));
  EXPECT_THAT(refusal([](proto::TableSpec& s) { s.mutable_optimizer()->set_vectors(65); }),
              testing::HasSubstr("at most 64"));
  EXPECT_THAT(refusal([](proto::TableSpec& s) { s.mutable_optimizer()->set_weight_decay(0.1); }),
              testing::HasSubstr("optimizer.weight_decay"));
  EXPECT_THAT(
      refusal([](proto::TableSpec& s) { s.mutable_contract()->set_kind(proto::Contract::BSP); }),
      testing::HasSubstr("choose ASYNC or SSP"));
  EXPECT_THAT(refusal([](proto::TableSpec& s) {
                s.clear_shape();
                s.mutable_sparse()->set_width(2);
              }),
              testing::HasSubstr("vectors is not for sparse tables"));
}

proto::TableSpec Sparse() {
  proto::TableSpec spec = Good();
  spec.clear_shape();
  spec.mutable_sparse()->set_width(16);
  spec.mutable_optimizer()->set_kind(proto::Optimizer::ROWWISE_ADAGRAD);
  return spec;
}

proto::TableSpec LocalRows() {
  proto::TableSpec spec = Sparse();
  spec.clear_optimizer();
  spec.clear_learning_rate();
  spec.mutable_contract()->set_kind(proto::Contract::LOCAL);
  spec.mutable_contract()->set_local_steps(8);
  spec.mutable_inner_optimizer()->set_kind(proto::Optimizer::ADAGRAD);
  spec.mutable_inner_learning_rate()->set_base(0.1);
  return spec;
}

TEST(SpecChecksTest, RoundsOfRowsPass) {
  for (const proto::Optimizer::Kind kind :
       {proto::Optimizer::SGD, proto::Optimizer::ADAGRAD, proto::Optimizer::ROWWISE_ADAGRAD,
        proto::Optimizer::ADAM}) {
    proto::TableSpec spec = LocalRows();
    EXPECT_TRUE(CheckTableSpec(spec).ok()) << CheckTableSpec(spec);
    spec.mutable_optimizer()->set_kind(kind);
    spec.mutable_inner_optimizer()->set_kind(kind);
    EXPECT_TRUE(CheckTableSpec(spec).ok()) << CheckTableSpec(spec);
    spec.mutable_sparse()->set_round_mean(proto::SparseRows::OF_HOLDERS);
    EXPECT_TRUE(CheckTableSpec(spec).ok()) << CheckTableSpec(spec);
  }
}

TEST(SpecChecksTest, SparseTablesPass) {
  EXPECT_TRUE(CheckTableSpec(Sparse()).ok()) << CheckTableSpec(Sparse());
  proto::TableSpec ftrl = Sparse();
  ftrl.mutable_sparse()->set_rows_max(1'000'000);
  ftrl.mutable_optimizer()->set_kind(proto::Optimizer::FTRL);
  ftrl.mutable_optimizer()->set_ftrl_beta(0);
  ftrl.mutable_optimizer()->set_l1(1);
  ftrl.mutable_asynchrony()->set_staleness_scaled_rate(true);
  EXPECT_TRUE(CheckTableSpec(ftrl).ok()) << CheckTableSpec(ftrl);
  proto::TableSpec evicting = Sparse();
  evicting.mutable_sparse()->set_rows_max(1'000'000);
  evicting.mutable_sparse()->set_when_full(proto::SparseRows::EVICT);
  evicting.mutable_sparse()->set_evict_by(proto::EVICT_BY_NORM);
  evicting.mutable_sparse()->set_admit_after(3);
  evicting.mutable_sparse()->set_admit_probability(0.5);
  EXPECT_TRUE(CheckTableSpec(evicting).ok()) << CheckTableSpec(evicting);
}

TEST(SpecChecksTest, OnlyRowsAreStoredInTwoBytes) {
  for (const proto::DataType type : {proto::BFLOAT16, proto::FLOAT16}) {
    proto::TableSpec rows = Sparse();
    rows.set_data_type(type);
    EXPECT_TRUE(CheckTableSpec(rows).ok()) << CheckTableSpec(rows);
    proto::TableSpec dense = Good();
    dense.set_data_type(type);
    EXPECT_THAT(std::string(CheckTableSpec(dense).message()),
                testing::HasSubstr("FLOAT16, but the table is dense"));
  }
  proto::TableSpec unknown = Sparse();
  unknown.set_data_type(static_cast<proto::DataType>(99));
  EXPECT_THAT(std::string(CheckTableSpec(unknown).message()),
              testing::HasSubstr("data_type = 99, but FLOAT32, BFLOAT16 or FLOAT16 is needed"));
}

TEST(SpecChecksTest, MistakesOfSparseTablesAreNamed) {
  using Spec = proto::TableSpec;
  const struct {
    std::string named;
    std::function<void(Spec&)> spoil;
  } cases[] = {
      {"sparse.width = 0", [](Spec& s) { s.mutable_sparse()->clear_width(); }},
      {"sparse.width = 4097", [](Spec& s) { s.mutable_sparse()->set_width(4097); }},
      {"set rows_max",
       [](Spec& s) { s.mutable_sparse()->set_when_full(proto::SparseRows::EVICT); }},
      {"sparse.evict_by = EVICT_BY_COUNT, but no row is evicted",
       [](Spec& s) { s.mutable_sparse()->set_evict_by(proto::EVICT_BY_COUNT); }},
      {"sparse.evict_by = 9",
       [](Spec& s) { s.mutable_sparse()->set_evict_by(static_cast<proto::EvictBy>(9)); }},
      {"sparse.when_full = 9",
       [](Spec& s) {
         s.mutable_sparse()->set_when_full(static_cast<proto::SparseRows::WhenFull>(9));
       }},
      {"sparse.admit_after = 65536", [](Spec& s) { s.mutable_sparse()->set_admit_after(65536); }},
      {"sparse.admit_probability = 1.5",
       [](Spec& s) { s.mutable_sparse()->set_admit_probability(1.5); }},
      {"sparse.admit_probability = nan",
       [](Spec& s) { s.mutable_sparse()->set_admit_probability(NAN); }},
      {"sparse.round_mean = OF_HOLDERS, but only LOCAL tables have rounds: leave it out",
       [](Spec& s) { s.mutable_sparse()->set_round_mean(proto::SparseRows::OF_HOLDERS); }},
      {"sparse.round_mean = 9, but it is unknown here",
       [](Spec& s) {
         s = LocalRows();
         s.mutable_sparse()->set_round_mean(static_cast<proto::SparseRows::RoundMean>(9));
       }},
      {"number of dimensions = 1", [](Spec& s) { s.add_shape(16); }},
      {"shard_bytes = 64", [](Spec& s) { s.set_shard_bytes(64); }},
      {"initializer.kind = GIVEN",
       [](Spec& s) { s.mutable_initializer()->set_kind(proto::Initializer::GIVEN); }},
      {"contract.overlap_steps = 1",
       [](Spec& s) {
         s = LocalRows();
         s.mutable_contract()->set_overlap_steps(1);
       }},
      {"choose SGD with rate 1",
       [](Spec& s) {
         s = LocalRows();
         s.mutable_optimizer()->set_kind(proto::Optimizer::NESTEROV);
       }},
      {"optimizer.kind = FTRL, but under LOCAL",
       [](Spec& s) {
         s = LocalRows();
         s.mutable_optimizer()->set_kind(proto::Optimizer::FTRL);
       }},
      {"optimizer.weight_decay = 0.1",
       [](Spec& s) {
         s = LocalRows();
         s.mutable_optimizer()->set_weight_decay(0.1);
       }},
      {"inner_optimizer.kind = MOMENTUM, but under LOCAL",
       [](Spec& s) {
         s = LocalRows();
         s.mutable_inner_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
       }},
      {"inner_optimizer.weight_decay = 0.1",
       [](Spec& s) {
         s = LocalRows();
         s.mutable_inner_optimizer()->set_weight_decay(0.1);
       }},
      {"inner_optimizer = none",
       [](Spec& s) {
         s = LocalRows();
         s.clear_inner_optimizer();
       }},
      {"asynchrony.delay_compensation = 1",
       [](Spec& s) { s.mutable_asynchrony()->set_delay_compensation(1); }},
      {"gradient_format = WIRE_INT8_BLOCK",
       [](Spec& s) { s.set_gradient_format(proto::WIRE_INT8_BLOCK); }},
      {"value_format = WIRE_BFLOAT16, but rows travel as they are stored",
       [](Spec& s) { s.set_value_format(proto::WIRE_BFLOAT16); }},
      {"use initializer ZEROS and a constant rate",
       [](Spec& s) {
         s.mutable_optimizer()->set_kind(proto::Optimizer::FTRL);
         s.mutable_initializer()->set_kind(proto::Initializer::CONSTANT);
       }},
      {"use initializer ZEROS and a constant rate",
       [](Spec& s) {
         s.mutable_optimizer()->set_kind(proto::Optimizer::FTRL);
         s.mutable_learning_rate()->set_warmup_samples(1);
       }},
      {"optimizer.l1 = -1", [](Spec& s) { s.mutable_optimizer()->set_l1(-1); }},
      {"optimizer.ftrl_beta = nan", [](Spec& s) { s.mutable_optimizer()->set_ftrl_beta(NAN); }},
      {"optimizer: momentum is not for sparse tables",
       [](Spec& s) { s.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM); }},
      {"optimizer: weight_decay is 0.1",
       [](Spec& s) { s.mutable_optimizer()->set_weight_decay(0.1); }},
      {"optimizer.kind = ROWWISE_ADAGRAD, but it updates rows",
       [](Spec& s) {
         s.clear_sparse();
         s.add_shape(16);
       }},
  };
  for (const auto& test : cases) {
    proto::TableSpec spec = Sparse();
    test.spoil(spec);
    const absl::Status status = CheckTableSpec(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << test.named;
    EXPECT_NE(status.message().find(test.named), absl::string_view::npos) << status;
  }
}

TEST(SpecChecksTest, EachMistakeIsNamed) {
  using Spec = proto::TableSpec;
  const struct {
    std::string named;
    std::function<void(Spec&)> spoil;
  } cases[] = {
      {"table name ''", [](Spec& s) { s.set_name(""); }},
      {"table name 'a b'", [](Spec& s) { s.set_name("a b"); }},
      {"1 to 256", [](Spec& s) { s.set_name(std::string(257, 'a')); }},
      {"data_type = 0", [](Spec& s) { s.clear_data_type(); }},
      {"number of dimensions = 0", [](Spec& s) { s.clear_shape(); }},
      {"number of dimensions = 9",
       [](Spec& s) {
         for (int i = 0; i < 7; ++i) s.add_shape(1);
       }},
      {"shape[1] = 0", [](Spec& s) { s.set_shape(1, 0); }},
      {"shape[1] = 18446744073709551615", [](Spec& s) { s.set_shape(1, ~uint64_t{0}); }},
      {"learning_rate.base = -1", [](Spec& s) { s.mutable_learning_rate()->set_base(-1); }},
      {"learning_rate.base = 0", [](Spec& s) { s.clear_learning_rate(); }},
      {"buffer = 4097", [](Spec& s) { s.mutable_contract()->set_buffer(4097); }},
      {"shard_bytes = 100", [](Spec& s) { s.set_shard_bytes(100); }},
      {"shard_bytes = 1073741824", [](Spec& s) { s.set_shard_bytes(1 << 30); }},
      {"norm_gate.factor = 0", [](Spec& s) { s.mutable_norm_gate(); }},
      {"norm_gate.factor = 1.5, but 2 to", [](Spec& s) { s.mutable_norm_gate()->set_factor(1.5); }},
      {"norm_gate.factor = nan", [](Spec& s) { s.mutable_norm_gate()->set_factor(NAN); }},
      {"norm_gate.quarantine_after = 1000001",
       [](Spec& s) {
         s.mutable_norm_gate()->set_factor(20);
         s.mutable_norm_gate()->set_quarantine_after(1'000'001);
       }},
      {"functions have no norm",
       [](Spec& s) {
         s = OfVectors();
         s.mutable_norm_gate()->set_factor(20);
       }},
      {"initializer = inf", [](Spec& s) { s.mutable_initializer()->set_a(INFINITY); }},
      {"UNIFORM needs a < b",
       [](Spec& s) {
         s.mutable_initializer()->set_kind(proto::Initializer::UNIFORM);
         s.mutable_initializer()->set_a(1);
       }},
      {"standard deviation",
       [](Spec& s) {
         s.mutable_initializer()->set_kind(proto::Initializer::NORMAL);
         s.mutable_initializer()->set_b(-1);
       }},
      {"optimizer.kind = 42",
       [](Spec& s) { s.mutable_optimizer()->set_kind(static_cast<proto::Optimizer::Kind>(42)); }},
      {"optimizer.momentum = 1", [](Spec& s) { s.mutable_optimizer()->set_momentum(1); }},
      {"optimizer.beta1 = nan", [](Spec& s) { s.mutable_optimizer()->set_beta1(NAN); }},
      {"optimizer.epsilon = -1", [](Spec& s) { s.mutable_optimizer()->set_epsilon(-1); }},
      {"optimizer.weight_decay = inf",
       [](Spec& s) { s.mutable_optimizer()->set_weight_decay(INFINITY); }},
      {"learning_rate.base = nan", [](Spec& s) { s.mutable_learning_rate()->set_base(NAN); }},
      {"learning_rate.decay_factor = 2",
       [](Spec& s) { s.mutable_learning_rate()->set_decay_factor(2); }},
      {"STEP needs at least 1",
       [](Spec& s) { s.mutable_learning_rate()->set_decay(proto::LearningRate::STEP); }},
      {"optimizer.trust_coefficient = -1",
       [](Spec& s) { s.mutable_optimizer()->set_trust_coefficient(-1); }},
      {"optimizer.delay = 4097", [](Spec& s) { s.mutable_optimizer()->set_delay(4097); }},
      {"asynchrony.delay_compensation = 11",
       [](Spec& s) { s.mutable_asynchrony()->set_delay_compensation(11); }},
      {"asynchrony.delay_compensation = nan",
       [](Spec& s) { s.mutable_asynchrony()->set_delay_compensation(NAN); }},
      {"the optimizer has no momentum",
       [](Spec& s) {
         s.mutable_optimizer()->set_kind(proto::Optimizer::ADAM);
         s.mutable_asynchrony()->set_automatic_momentum(true);
       }},
      {"corrects the rate already",
       [](Spec& s) {
         s.mutable_optimizer()->set_kind(proto::Optimizer::MOMENTUM);
         s.mutable_asynchrony()->set_automatic_momentum(true);
         s.mutable_asynchrony()->set_staleness_scaled_rate(true);
       }},
      {"not gradients: leave it out",
       [](Spec& s) {
         s = Local();
         s.mutable_asynchrony()->set_delay_compensation(1);
       }},
      {"contract kind 0", [](Spec& s) { s.clear_contract(); }},
      {"local_steps = 0",
       [](Spec& s) {
         s = Local();
         s.mutable_contract()->clear_local_steps();
       }},
      {"overlap_steps = 16",
       [](Spec& s) {
         s = Local();
         s.mutable_contract()->set_overlap_steps(16);
       }},
      {"inner_optimizer = none",
       [](Spec& s) {
         s = Local();
         s.clear_inner_optimizer();
       }},
      {"inner_optimizer.kind = 6",
       [](Spec& s) {
         s = Local();
         s.mutable_inner_optimizer()->set_kind(proto::Optimizer::LARS);
       }},
      {"inner_optimizer.momentum = 2",
       [](Spec& s) {
         s = Local();
         s.mutable_inner_optimizer()->set_momentum(2);
       }},
      {"inner_learning_rate.base = 0",
       [](Spec& s) {
         s = Local();
         s.clear_inner_learning_rate();
       }},
      {"inner_optimizer = set", [](Spec& s) { s.mutable_inner_optimizer(); }},
      {"inner_learning_rate = set", [](Spec& s) { s.mutable_inner_learning_rate()->set_base(1); }},
      {"gradient_format = 9",
       [](Spec& s) { s.set_gradient_format(static_cast<proto::WireFormat>(9)); }},
      {"value_format = 9", [](Spec& s) { s.set_value_format(static_cast<proto::WireFormat>(9)); }},
      {"value_format = WIRE_TOP_BLOCK, but it leaves out most elements",
       [](Spec& s) { s.set_value_format(proto::WIRE_TOP_BLOCK); }},
      {"value_format = WIRE_BFLOAT16, but after a loss, members of a LOCAL table",
       [](Spec& s) {
         s = Local();
         s.set_value_format(proto::WIRE_BFLOAT16);
       }},
      {"durability = 9", [](Spec& s) { s.set_durability(static_cast<proto::Durability>(9)); }},
      {"replicas = 6, but 2 to 5", [](Spec& s) { s.set_replicas(6); }},
      {"replicas = 1, but one server alone",
       [](Spec& s) {
         s.set_durability(proto::REPLICATED);
         s.set_replicas(1);
       }},
      {"replicas = 1, but one server alone", [](Spec& s) { s.set_replicas(1); }},
      {"replicas = 2, but a table of durability MEMORY",
       [](Spec& s) {
         s.set_durability(proto::MEMORY);
         s.set_replicas(2);
       }},
      {"non_finite = 9", [](Spec& s) { s.set_non_finite(static_cast<proto::NonFinitePolicy>(9)); }},
  };
  for (const auto& [named, spoil] : cases) {
    Spec spec = Good();
    spoil(spec);
    const absl::Status status = CheckTableSpec(spec);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << named;
    EXPECT_NE(status.message().find(named), absl::string_view::npos)
        << named << " is not in: " << status.message();
  }
}

TEST(SpecChecksTest, EveryDurabilityWithItsReplicas) {
  for (const auto& [durability, replicas] :
       std::vector<std::pair<proto::Durability, uint32_t>>{{proto::DURABILITY_UNSPECIFIED, 0},
                                                           {proto::DURABILITY_UNSPECIFIED, 3},
                                                           {proto::MEMORY, 0},
                                                           {proto::MEMORY, 1},
                                                           {proto::REPLICATED, 0},
                                                           {proto::REPLICATED, 2},
                                                           {proto::REPLICATED, 5}}) {
    proto::TableSpec spec = Good();
    spec.set_durability(durability);
    spec.set_replicas(replicas);
    EXPECT_TRUE(CheckTableSpec(spec).ok()) << durability << " " << replicas;
  }
}

}  // namespace
}  // namespace covey

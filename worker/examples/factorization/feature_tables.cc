// SPDX-License-Identifier: Apache-2.0
#include "worker/examples/factorization/feature_tables.h"

#include "absl/strings/string_view.h"
#include "common/contract/contract.h"
#include "worker/examples/rows/row_table.h"

namespace covey::factorization {
namespace {

// Of factors. Features that are first met in the test have their first values, so larger ones would
// blur their scores.
constexpr float kFactorDeviation = 0.01f;

proto::DataType DataTypeOf(RowType type) {
  switch (type) {
    case RowType::kFloat32:
      return proto::FLOAT32;
    case RowType::kBfloat16:
      return proto::BFLOAT16;
    case RowType::kFloat16:
      return proto::FLOAT16;
  }
  return proto::FLOAT32;
}

// What the tables of weights and of factors have in common. In rounds each worker has the optimizer
// of its own, and the servers move by the mean, times a rate.
proto::TableSpec FeaturesSpec(const Options& options, uint32_t groups, absl::string_view name,
                              uint64_t width, proto::Optimizer::Kind optimizer) {
  proto::TableSpec spec = examples::RowsSpec(name, static_cast<uint32_t>(width));
  spec.set_data_type(DataTypeOf(options.row_type));
  *spec.mutable_contract() = ContractToProto(options.contract);
  const bool has_rounds = options.contract.kind == Contract::Kind::kLocal;
  (has_rounds ? spec.mutable_inner_optimizer() : spec.mutable_optimizer())->set_kind(optimizer);
  (has_rounds ? spec.mutable_inner_learning_rate() : spec.mutable_learning_rate())
      ->set_base(options.learning_rate);
  if (has_rounds) spec.mutable_learning_rate()->set_base(options.OuterRate(groups));
  spec.mutable_sparse()->set_round_mean(options.round_mean == RoundMean::kOfHolders
                                            ? proto::SparseRows::OF_HOLDERS
                                            : proto::SparseRows::OF_ALL_PUSHES);
  spec.mutable_sparse()->set_admit_after(static_cast<uint32_t>(options.admit_after));
  return spec;
}

}  // namespace

proto::TableSpec WeightsSpec(const Options& options, uint32_t groups) {
  const bool is_ftrl = options.optimizer == Optimizer::kFtrl;
  proto::TableSpec spec =
      FeaturesSpec(options, groups, "factorization/weights", 1,
                   is_ftrl ? proto::Optimizer::FTRL : proto::Optimizer::ADAGRAD);
  if (is_ftrl) {
    spec.mutable_optimizer()->set_l1(options.l1);
    spec.mutable_optimizer()->set_l2(options.l2);
  }
  return spec;
}

proto::TableSpec FactorsSpec(const Options& options, uint32_t groups) {
  proto::TableSpec spec = FeaturesSpec(options, groups, "factorization/factors", options.factors,
                                       proto::Optimizer::ADAGRAD);
  spec.mutable_initializer()->set_kind(proto::Initializer::NORMAL);
  spec.mutable_initializer()->set_b(kFactorDeviation);
  spec.mutable_initializer()->set_seed(options.seed);
  return spec;
}

}  // namespace covey::factorization

#include "server/table/table_spec.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/optimizer/definition.h"

namespace covey::server {
namespace {

absl::Status Refuse(absl::string_view field, int value) {
  return absl::InvalidArgumentError(absl::StrCat(
      field, " ", value, " is not known to this server; choose one of table.proto, or ",
      "run servers of the scheduler's version"));
}

absl::StatusOr<InitializerConfig> InitializerOf(const proto::Initializer& initializer) {
  InitializerConfig config{.a = initializer.a(), .b = initializer.b(), .seed = initializer.seed()};
  switch (initializer.kind()) {
    case proto::Initializer::ZEROS:
      config.kind = InitializerKind::kZeros;
      return config;
    case proto::Initializer::CONSTANT:
      config.kind = InitializerKind::kConstant;
      return config;
    case proto::Initializer::UNIFORM:
      config.kind = InitializerKind::kUniform;
      return config;
    case proto::Initializer::NORMAL:
      config.kind = InitializerKind::kNormal;
      return config;
    default:
      return Refuse("initializer kind", initializer.kind());
  }
}

// `optimizer`: the table's.
absl::StatusOr<AsynchronyRules> AsynchronyOf(const proto::Asynchrony& asynchrony,
                                             const OptimizerConfig& optimizer) {
  const double compensation = asynchrony.delay_compensation();
  if (!(compensation >= 0 && compensation <= 10)) {
    return absl::InvalidArgumentError(absl::StrCat("asynchrony.delay_compensation is ",
                                                   compensation, "; choose a value in [0, 10]"));
  }
  AsynchronyRules rules{.delay_compensation = compensation,
                        .scales_rate = asynchrony.staleness_scaled_rate()};
  if (!asynchrony.automatic_momentum()) return rules;
  if (rules.scales_rate || !HasMomentum(optimizer.kind)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "asynchrony.automatic_momentum needs an optimizer with momentum, which ",
        OptimizerName(optimizer.kind), HasMomentum(optimizer.kind) ? " has" : " has not",
        ", and no staleness_scaled_rate beside it; leave one out"));
  }
  rules.target_momentum = optimizer.momentum;
  return rules;
}

absl::StatusOr<TableRules> Convert(const proto::Table& table, const proto::Shard& shard) {
  const proto::TableSpec& spec = table.spec();
  if (spec.data_type() != proto::FLOAT32) return Refuse("data type", spec.data_type());
  if (!proto::Durability_IsValid(spec.durability())) {
    return Refuse("durability", spec.durability());
  }
  TableRules rules;
  switch (spec.non_finite()) {
    case proto::REJECT:
      break;
    case proto::ACCEPT:
      rules.refuses_non_finite = false;
      break;
    default:
      return Refuse("non-finite policy", spec.non_finite());
  }
  // The sender chooses the format of each push; the table's is advice.
  if (!proto::WireFormat_IsValid(spec.gradient_format())) {
    return Refuse("gradient format", spec.gradient_format());
  }
  COVEY_ASSIGN_OR_RETURN(rules.contract, ContractInForce(table));
  rules.shard.first_element = shard.first_element();
  rules.shard.element_count = shard.element_count();
  COVEY_ASSIGN_OR_RETURN(rules.shard.initializer, InitializerOf(spec.initializer()));
  COVEY_ASSIGN_OR_RETURN(rules.shard.optimizer, OptimizerFromProto(spec.optimizer()));
  COVEY_ASSIGN_OR_RETURN(rules.asynchrony, AsynchronyOf(spec.asynchrony(), rules.shard.optimizer));
  COVEY_ASSIGN_OR_RETURN(rules.shard.learning_rate, LearningRateFromProto(spec.learning_rate()));
  return rules;
}

}  // namespace

absl::StatusOr<TableRules> RulesOf(const proto::Table& table, const proto::Shard& shard) {
  absl::StatusOr<TableRules> rules = Convert(table, shard);
  if (rules.ok()) return rules;
  return Annotate(absl::StrCat("table=", table.spec().name()), rules.status());
}

}  // namespace covey::server

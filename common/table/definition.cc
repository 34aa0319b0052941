// SPDX-License-Identifier: Apache-2.0
#include "common/table/definition.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/enum_map.h"
#include "common/base/status_macros.h"
#include "common/optimizer/definition.h"
#include "common/table/evict_by.h"
#include "common/table/key_slots.h"
#include "common/table/row_type.h"
#include "common/table/spec_checks.h"
#include "common/tensor/wire_format_proto.h"

namespace covey {
namespace {

// Of LOCAL tables that name no outer rate: with SGD, the values become the mean of the groups'.
constexpr double kOuterRate = 1;

// Each function reads one part of a spec that has passed CheckTableSpec.

uint64_t ElementsOf(const proto::TableSpec& spec) {
  if (spec.has_sparse()) return kKeySlots;
  uint64_t elements = 1;
  for (const uint64_t extent : spec.shape()) elements *= extent;
  return elements;
}

constexpr EnumMap kInitializerKinds({
    std::pair(InitializerKind::kZeros, proto::Initializer::ZEROS),
    std::pair(InitializerKind::kConstant, proto::Initializer::CONSTANT),
    std::pair(InitializerKind::kUniform, proto::Initializer::UNIFORM),
    std::pair(InitializerKind::kNormal, proto::Initializer::NORMAL),
    std::pair(InitializerKind::kGiven, proto::Initializer::GIVEN),
});
static_assert(kInitializerKinds.IsOneToOne() &&
              kInitializerKinds.size() == proto::Initializer::Kind_ARRAYSIZE);

InitializerConfig InitializerOf(const proto::Initializer& initializer) {
  return {.kind = *kInitializerKinds.ToOurs(initializer.kind()),
          .a = initializer.a(),
          .b = initializer.b(),
          .seed = initializer.seed()};
}

constexpr EnumMap kWhenFull({
    std::pair(WhenFull::kRefuse, proto::SparseRows::REFUSE),
    std::pair(WhenFull::kSkip, proto::SparseRows::SKIP),
    std::pair(WhenFull::kEvict, proto::SparseRows::EVICT),
});
static_assert(kWhenFull.IsOneToOne() && kWhenFull.size() == proto::SparseRows::WhenFull_ARRAYSIZE);

constexpr EnumMap kRoundMeans({
    std::pair(RoundMean::kOfAllPushes, proto::SparseRows::OF_ALL_PUSHES),
    std::pair(RoundMean::kOfHolders, proto::SparseRows::OF_HOLDERS),
});
static_assert(kRoundMeans.IsOneToOne() &&
              kRoundMeans.size() == proto::SparseRows::RoundMean_ARRAYSIZE);

RowLifeCycle LifeCycleOf(const proto::SparseRows& rows) {
  return {.rows_max = rows.rows_max(),
          .when_full = *kWhenFull.ToOurs(rows.when_full()),
          .evict_by = *EvictByFromProto(rows.evict_by()),
          .admit_after = std::max<uint32_t>(rows.admit_after(), 1),
          .admit_probability = rows.admit_probability() == 0 ? 1 : rows.admit_probability()};
}

AsynchronyRules AsynchronyOf(const proto::TableSpec& spec) {
  const proto::Asynchrony& asynchrony = spec.asynchrony();
  AsynchronyRules rules{.delay_compensation = asynchrony.delay_compensation(),
                        .scales_rate = asynchrony.staleness_scaled_rate()};
  if (asynchrony.automatic_momentum()) rules.target_momentum = spec.optimizer().momentum();
  return rules;
}

absl::StatusOr<TableDefinition> Convert(const proto::TableSpec& spec,
                                        const proto::Contract& contract) {
  TableDefinition definition;
  definition.name = spec.name();
  definition.elements = ElementsOf(spec);
  if (spec.has_sparse()) {
    definition.sparse = {.width = spec.sparse().width(),
                         .type = *RowTypeFromProto(spec.data_type()),
                         .life_cycle = LifeCycleOf(spec.sparse()),
                         .round_mean = *kRoundMeans.ToOurs(spec.sparse().round_mean())};
  }
  definition.initializer = InitializerOf(spec.initializer());
  COVEY_ASSIGN_OR_RETURN(definition.optimizer, OptimizerFromProto(spec.optimizer()));
  COVEY_ASSIGN_OR_RETURN(definition.learning_rate, LearningRateFromProto(spec.learning_rate()));
  if (!spec.has_learning_rate()) definition.learning_rate.base_rate = kOuterRate;
  if (spec.has_inner_optimizer()) {
    TableDefinition::InnerSteps& inner = definition.inner.emplace();
    COVEY_ASSIGN_OR_RETURN(inner.optimizer, OptimizerFromProto(spec.inner_optimizer()));
    COVEY_ASSIGN_OR_RETURN(inner.learning_rate, LearningRateFromProto(spec.inner_learning_rate()));
  }
  COVEY_ASSIGN_OR_RETURN(definition.contract, ContractFromProto(contract));
  if (definition.inner.has_value() != (definition.contract.kind == Contract::Kind::kLocal)) {
    return absl::InvalidArgumentError(
        absl::StrCat("contract ", ContractName(definition.contract), " is in force for a table ",
                     definition.inner ? "with" : "without", " inner steps"));
  }
  definition.refuses_non_finite = spec.non_finite() == proto::REJECT;
  if (spec.has_norm_gate()) {
    definition.norm_gate = {.factor = spec.norm_gate().factor(),
                            .quarantine_after = spec.norm_gate().quarantine_after()};
  }
  definition.asynchrony = AsynchronyOf(spec);
  definition.gradient_format = *WireFormatFromProto(spec.gradient_format());
  definition.value_format = *WireFormatFromProto(spec.value_format());
  return definition;
}

absl::StatusOr<TableDefinition> CheckAndConvert(const proto::TableSpec& spec,
                                                const proto::Contract& contract) {
  COVEY_RETURN_IF_ERROR(CheckTableSpec(spec));
  absl::StatusOr<TableDefinition> definition = Convert(spec, contract);
  if (definition.ok()) return definition;
  return Annotate(absl::StrCat("table '", spec.name(), "'"), definition.status());
}

}  // namespace

absl::StatusOr<TableDefinition> TableDefinition::Parse(const proto::TableSpec& spec) {
  return CheckAndConvert(spec, spec.contract());
}

absl::StatusOr<TableDefinition> TableDefinition::InForce(const proto::Table& table) {
  return CheckAndConvert(table.spec(),
                         table.has_contract() ? table.contract() : table.spec().contract());
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/table/spec_checks.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/cluster/limits.h"
#include "common/contract/contract.h"
#include "common/optimizer/definition.h"
#include "common/optimizer/row_optimizer.h"
#include "common/table/row_type.h"
#include "common/tensor/wire_format.h"
#include "common/tensor/wire_format_proto.h"

namespace covey {
namespace {

constexpr absl::string_view kUnknown =
    "it is unknown here: choose one of table.proto, or run all processes of the job in the "
    "scheduler's version";

absl::Status Bad(const proto::TableSpec& spec, absl::string_view field, const absl::AlphaNum& value,
                 absl::string_view allowed) {
  return absl::InvalidArgumentError(
      absl::StrCat("table '", spec.name(), "': ", field, " = ", value, ", but ", allowed));
}

absl::Status CheckName(absl::string_view name) {
  const bool known = std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '/' ||
           c == '-';
  });
  if (!name.empty() && name.size() <= kTableNameBytesMax && known) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "table name '", absl::CHexEscape(name.substr(0, kTableNameBytesMax)),
      "' is not allowed: use 1 to ", kTableNameBytesMax, " of the characters A-Z a-z 0-9 _ . / -"));
}

absl::Status CheckShape(const proto::TableSpec& spec) {
  if (!RowTypeFromProto(spec.data_type())) {
    return Bad(spec, "data_type", static_cast<int>(spec.data_type()),
               "FLOAT32, BFLOAT16 or FLOAT16 is needed");
  }
  if (spec.has_sparse()) return absl::OkStatus();
  if (spec.data_type() != proto::FLOAT32) {
    return Bad(spec, "data_type", proto::DataType_Name(spec.data_type()),
               "the table is dense, and only rows of sparse tables are stored in 2 bytes per "
               "element: choose FLOAT32, or set sparse");
  }
  if (spec.shape_size() < 1 || spec.shape_size() > static_cast<int>(kTableDimensionsMax)) {
    return Bad(spec, "number of dimensions", spec.shape_size(),
               absl::StrCat("1 to ", kTableDimensionsMax, " are allowed"));
  }
  uint64_t elements = 1;
  for (int i = 0; i < spec.shape_size(); ++i) {
    const uint64_t extent = spec.shape(i);
    if (extent < 1 || elements > kTableElementsMax / extent) {
      return Bad(spec, absl::StrCat("shape[", i, "]"), extent,
                 absl::StrCat("each dimension is at least 1 and a table has at most ",
                              kTableElementsMax, " elements"));
    }
    elements *= extent;
  }
  if (spec.shard_bytes() % 64 != 0 || spec.shard_bytes() > kShardBytesMax) {
    return Bad(spec, "shard_bytes", spec.shard_bytes(),
               absl::StrCat("a multiple of 64 up to ", kShardBytesMax, " (or 0) is allowed"));
  }
  return absl::OkStatus();
}

absl::Status CheckInitializer(const proto::TableSpec& spec) {
  const proto::Initializer& initializer = spec.initializer();
  if (!proto::Initializer::Kind_IsValid(initializer.kind())) {
    return Bad(spec, "initializer.kind", static_cast<int>(initializer.kind()), kUnknown);
  }
  if (!std::isfinite(initializer.a()) || !std::isfinite(initializer.b())) {
    return Bad(spec, "initializer", absl::StrCat(initializer.a(), ", ", initializer.b()),
               "a and b are finite");
  }
  if (initializer.kind() == proto::Initializer::UNIFORM && initializer.a() >= initializer.b()) {
    return Bad(spec, "initializer.a", initializer.a(), "UNIFORM needs a < b");
  }
  if (initializer.kind() == proto::Initializer::NORMAL && initializer.b() < 0) {
    return Bad(spec, "initializer.b", initializer.b(), "a standard deviation is not negative");
  }
  return absl::OkStatus();
}

// `field` is the optimizer's name in the spec.
absl::Status CheckOptimizer(const proto::TableSpec& spec, absl::string_view field,
                            const proto::Optimizer& optimizer) {
  const auto bad = [&](absl::string_view name, const absl::AlphaNum& value,
                       absl::string_view allowed) {
    return Bad(spec, absl::StrCat(field, ".", name), value, allowed);
  };
  if (!proto::Optimizer::Kind_IsValid(optimizer.kind())) {
    return bad("kind", static_cast<int>(optimizer.kind()), kUnknown);
  }
  const struct {
    absl::string_view name;
    double value;
  } fractions[] = {{"momentum", optimizer.momentum()},
                   {"beta1", optimizer.beta1()},
                   {"beta2", optimizer.beta2()}};
  for (const auto& [name, value] : fractions) {
    if (!(value >= 0 && value < 1)) return bad(name, value, "it lies in [0, 1)");
  }
  if (optimizer.epsilon() != 0 && !(optimizer.epsilon() >= 1e-12 && optimizer.epsilon() <= 1)) {
    return bad("epsilon", optimizer.epsilon(), "it lies in [1e-12, 1], or is 0");
  }
  if (!(optimizer.weight_decay() >= 0 && optimizer.weight_decay() <= 1)) {
    return bad("weight_decay", optimizer.weight_decay(), "it lies in [0, 1]");
  }
  const double trust = optimizer.trust_coefficient();
  if (trust != 0 && !(trust >= 1e-12 && trust <= 1)) {
    return bad("trust_coefficient", trust, "it lies in [1e-12, 1], or is 0");
  }
  const struct {
    absl::string_view name;
    double value;
  } coefficients[] = {
      {"ftrl_beta", optimizer.ftrl_beta()}, {"l1", optimizer.l1()}, {"l2", optimizer.l2()}};
  for (const auto& [name, value] : coefficients) {
    if (!(value >= 0 && value <= 1e6)) return bad(name, value, "it lies in [0, 1e6]");
  }
  const absl::StatusOr<OptimizerConfig> config = OptimizerFromProto(optimizer);
  if (config.ok() && NeedsRows(config->kind) && !spec.has_sparse()) {
    return bad("kind", proto::Optimizer::Kind_Name(optimizer.kind()),
               "it updates rows, and the table is dense: choose another one, or set sparse");
  }
  if (optimizer.delay() > kDelayMax) {
    return bad("delay", optimizer.delay(), absl::StrCat("at most ", kDelayMax));
  }
  if (optimizer.vectors() > kVectorsMax) {
    return bad("vectors", optimizer.vectors(), absl::StrCat("at most ", kVectorsMax));
  }
  return absl::OkStatus();
}

// What a table of vectors must have, and what has no meaning for it.
absl::Status CheckVectors(const proto::TableSpec& spec) {
  if (spec.optimizer().kind() != proto::Optimizer::VECTORS) return absl::OkStatus();
  if (spec.optimizer().vectors() == 0) {
    return Bad(spec, "optimizer.vectors", 0,
               absl::StrCat("VECTORS needs 1 to ", kVectorsMax, " vectors besides the values"));
  }
  if (spec.optimizer().weight_decay() != 0) {
    return Bad(spec, "optimizer.weight_decay", spec.optimizer().weight_decay(),
               "an update of VECTORS only adds to vector 1: leave it out");
  }
  const proto::Contract::Kind contract = spec.contract().kind();
  if (contract == proto::Contract::ASYNC || contract == proto::Contract::SSP) {
    return absl::OkStatus();
  }
  return Bad(spec, "contract.kind", proto::Contract::Kind_Name(contract),
             "functions and pushes of VECTORS are applied on arrival: choose ASYNC or SSP");
}

absl::Status CheckAsynchrony(const proto::TableSpec& spec) {
  const proto::Asynchrony& asynchrony = spec.asynchrony();
  const double compensation = asynchrony.delay_compensation();
  if (!(compensation >= 0 && compensation <= 10)) {
    return Bad(spec, "asynchrony.delay_compensation", compensation, "it lies in [0, 10]");
  }
  const bool is_used =
      compensation != 0 || asynchrony.staleness_scaled_rate() || asynchrony.automatic_momentum();
  if (is_used && spec.contract().kind() == proto::Contract::LOCAL) {
    return Bad(spec, "asynchrony", asynchrony.ShortDebugString(),
               "the pushes of a LOCAL table are not gradients: leave it out");
  }
  if (!asynchrony.automatic_momentum()) return absl::OkStatus();
  if (asynchrony.staleness_scaled_rate()) {
    return Bad(spec, "asynchrony.staleness_scaled_rate", "true",
               "automatic_momentum corrects the rate already: choose one of them");
  }
  const auto optimizer = OptimizerFromProto(spec.optimizer());
  if (!optimizer.ok() || !HasMomentum(optimizer->kind)) {
    return Bad(spec, "asynchrony.automatic_momentum", "true",
               "the optimizer has no momentum: use MOMENTUM, NESTEROV, LARS or DELAYED_NESTEROV");
  }
  return absl::OkStatus();
}

absl::Status CheckLearningRate(const proto::TableSpec& spec, absl::string_view field,
                               const proto::LearningRate& rate) {
  const auto bad = [&](absl::string_view name, const absl::AlphaNum& value,
                       absl::string_view allowed) {
    return Bad(spec, absl::StrCat(field, ".", name), value, allowed);
  };
  if (!(rate.base() > 0 && rate.base() <= 1000)) {
    return bad("base", rate.base(), "it is above 0 and at most 1000");
  }
  if (!proto::LearningRate::Decay_IsValid(rate.decay())) {
    return bad("decay", static_cast<int>(rate.decay()), kUnknown);
  }
  if (!(rate.decay_factor() >= 0 && rate.decay_factor() <= 1)) {
    return bad("decay_factor", rate.decay_factor(), "it lies in [0, 1]");
  }
  if (rate.decay() != proto::LearningRate::CONSTANT && rate.decay_samples() == 0) {
    return bad("decay_samples", 0,
               absl::StrCat(proto::LearningRate::Decay_Name(rate.decay()), " needs at least 1"));
  }
  const bool ends =
      rate.decay() == proto::LearningRate::LINEAR || rate.decay() == proto::LearningRate::COSINE;
  if (ends && rate.decay_samples() <= rate.warmup_samples()) {
    return bad("decay_samples", rate.decay_samples(),
               absl::StrCat("it comes after warmup_samples, which is ", rate.warmup_samples()));
  }
  return absl::OkStatus();
}

absl::Status CheckInnerKind(const proto::TableSpec& spec) {
  switch (spec.inner_optimizer().kind()) {
    case proto::Optimizer::SGD:
    case proto::Optimizer::MOMENTUM:
    case proto::Optimizer::NESTEROV:
    case proto::Optimizer::ADAM:
    case proto::Optimizer::ADAMW:
      return absl::OkStatus();
    default:
      return Bad(spec, "inner_optimizer.kind", static_cast<int>(spec.inner_optimizer().kind()),
                 "one of SGD, MOMENTUM, NESTEROV, ADAM, ADAMW is needed");
  }
}

// The inner optimizer: LOCAL tables must name one, other tables must not.
absl::Status CheckInner(const proto::TableSpec& spec) {
  if (spec.contract().kind() != proto::Contract::LOCAL) {
    if (!spec.has_inner_optimizer() && !spec.has_inner_learning_rate()) return absl::OkStatus();
    return Bad(spec, spec.has_inner_optimizer() ? "inner_optimizer" : "inner_learning_rate", "set",
               "only LOCAL tables have inner steps: leave it out, or use contract LOCAL");
  }
  if (!spec.has_inner_optimizer()) {
    return Bad(spec, "inner_optimizer", "none", "LOCAL needs one for the steps between rounds");
  }
  // That of rows: CheckLocalRows.
  if (!spec.has_sparse()) COVEY_RETURN_IF_ERROR(CheckInnerKind(spec));
  COVEY_RETURN_IF_ERROR(CheckOptimizer(spec, "inner_optimizer", spec.inner_optimizer()));
  return CheckLearningRate(spec, "inner_learning_rate", spec.inner_learning_rate());
}

absl::Status CheckLifeCycle(const proto::TableSpec& spec) {
  const proto::SparseRows& rows = spec.sparse();
  if (!proto::SparseRows::WhenFull_IsValid(rows.when_full())) {
    return Bad(spec, "sparse.when_full", static_cast<int>(rows.when_full()), kUnknown);
  }
  if (!proto::EvictBy_IsValid(rows.evict_by())) {
    return Bad(spec, "sparse.evict_by", static_cast<int>(rows.evict_by()), kUnknown);
  }
  if (rows.when_full() == proto::SparseRows::EVICT && rows.rows_max() == 0) {
    return Bad(spec, "sparse.when_full", "EVICT",
               "a table without rows_max is never full: set rows_max to the rows that it may hold");
  }
  if (rows.evict_by() != proto::EVICT_BY_AGE && rows.when_full() != proto::SparseRows::EVICT) {
    return Bad(spec, "sparse.evict_by", proto::EvictBy_Name(rows.evict_by()),
               "no row is evicted: set when_full to EVICT, or leave it out");
  }
  if (rows.admit_after() > kAdmitAfterMax) {
    return Bad(spec, "sparse.admit_after", rows.admit_after(),
               absl::StrCat("at most ", kAdmitAfterMax));
  }
  const double probability = rows.admit_probability();
  if (!(probability >= 0 && probability <= 1)) {
    return Bad(spec, "sparse.admit_probability", probability, "it lies in (0, 1], or is 0");
  }
  return absl::OkStatus();
}

// `field` is the optimizer's name in the spec.
absl::Status CheckLocalRowOptimizer(const proto::TableSpec& spec, absl::string_view field,
                                    const proto::Optimizer& optimizer, absl::string_view instead) {
  switch (optimizer.kind()) {
    case proto::Optimizer::SGD:
    case proto::Optimizer::ADAGRAD:
    case proto::Optimizer::ROWWISE_ADAGRAD:
    case proto::Optimizer::ADAM:
      break;
    default:
      return Bad(spec, absl::StrCat(field, ".kind"), proto::Optimizer::Kind_Name(optimizer.kind()),
                 absl::StrCat("under LOCAL rows that a round does not touch do not move, and what "
                              "moves is a change of values and no gradient: choose ",
                              instead));
  }
  if (optimizer.weight_decay() == 0) return absl::OkStatus();
  return Bad(spec, absl::StrCat(field, ".weight_decay"), optimizer.weight_decay(),
             "it would change rows that a round does not touch: leave it out");
}

// Both optimizers of a LOCAL sparse table, and its rounds.
absl::Status CheckLocalRows(const proto::TableSpec& spec) {
  const proto::SparseRows::RoundMean mean = spec.sparse().round_mean();
  if (!proto::SparseRows::RoundMean_IsValid(mean)) {
    return Bad(spec, "sparse.round_mean", static_cast<int>(mean), kUnknown);
  }
  if (spec.contract().kind() != proto::Contract::LOCAL) {
    if (mean == proto::SparseRows::OF_ALL_PUSHES) return absl::OkStatus();
    return Bad(spec, "sparse.round_mean", proto::SparseRows::RoundMean_Name(mean),
               "only LOCAL tables have rounds: leave it out, or use contract LOCAL");
  }
  COVEY_RETURN_IF_ERROR(CheckLocalRowOptimizer(
      spec, "optimizer", spec.optimizer(),
      "SGD with rate 1, which takes the mean of the changes, or ADAGRAD, ROWWISE_ADAGRAD or ADAM"));
  COVEY_RETURN_IF_ERROR(CheckLocalRowOptimizer(spec, "inner_optimizer", spec.inner_optimizer(),
                                               "SGD, ADAGRAD, ROWWISE_ADAGRAD or ADAM"));
  if (spec.contract().overlap_steps() == 0) return absl::OkStatus();
  return Bad(spec, "contract.overlap_steps", spec.contract().overlap_steps(),
             "a worker reads the rows of its next round when that begins: leave it out");
}

// What a sparse table must have, and what has no meaning for it.
absl::Status CheckSparse(const proto::TableSpec& spec) {
  if (!spec.has_sparse()) return absl::OkStatus();
  const uint32_t width = spec.sparse().width();
  if (width < 1 || width > kRowWidthMax) {
    return Bad(spec, "sparse.width", width, absl::StrCat("1 to ", kRowWidthMax, " are allowed"));
  }
  if (spec.shape_size() != 0) {
    return Bad(spec, "number of dimensions", spec.shape_size(),
               "a sparse table has rows of sparse.width, and no shape: leave it out");
  }
  if (spec.shard_bytes() != 0) {
    return Bad(spec, "shard_bytes", spec.shard_bytes(),
               "shards of a sparse table grow with its rows: leave it out");
  }
  if (spec.initializer().kind() == proto::Initializer::GIVEN) {
    return Bad(spec, "initializer.kind", "GIVEN",
               "the keys of a sparse table are not known beforehand: choose ZEROS, CONSTANT, "
               "UNIFORM or NORMAL");
  }
  COVEY_RETURN_IF_ERROR(CheckLocalRows(spec));
  if (spec.asynchrony().delay_compensation() != 0) {
    return Bad(spec, "asynchrony.delay_compensation", spec.asynchrony().delay_compensation(),
               "it would keep all rows once more for each producer: leave it out");
  }
  const auto format = WireFormatFromProto(spec.gradient_format());
  if (format && HasBlocks(*format)) {
    return Bad(spec, "gradient_format", proto::WireFormat_Name(spec.gradient_format()),
               "rows of different size would share a scale: choose float32, float16 or bfloat16");
  }
  if (spec.value_format() != proto::WIRE_FLOAT32) {
    return Bad(spec, "value_format", proto::WireFormat_Name(spec.value_format()),
               "rows travel as they are stored: leave it out, and set data_type");
  }
  const bool is_constant = spec.learning_rate().decay() == proto::LearningRate::CONSTANT &&
                           spec.learning_rate().warmup_samples() == 0;
  if (spec.optimizer().kind() == proto::Optimizer::FTRL &&
      (!is_constant || spec.initializer().kind() != proto::Initializer::ZEROS)) {
    return Bad(spec, "optimizer.kind", "FTRL",
               "its values follow from its state: use initializer ZEROS and a constant rate");
  }
  COVEY_RETURN_IF_ERROR(CheckLifeCycle(spec));
  const absl::StatusOr<OptimizerConfig> optimizer = OptimizerFromProto(spec.optimizer());
  absl::Status status = optimizer.ok() ? CheckRowOptimizer(*optimizer) : optimizer.status();
  return status.ok() ? status : Annotate(absl::StrCat("table '", spec.name(), "'"), status);
}

absl::Status CheckNormGate(const proto::TableSpec& spec) {
  if (!spec.has_norm_gate()) return absl::OkStatus();
  const proto::NormGate& gate = spec.norm_gate();
  if (!(gate.factor() >= kNormGateFactorMin && gate.factor() <= kNormGateFactorMax)) {
    return Bad(spec, "norm_gate.factor", gate.factor(),
               absl::StrCat(kNormGateFactorMin, " to ", kNormGateFactorMax,
                            " are allowed: 20 passes what training does by itself"));
  }
  if (gate.quarantine_after() > kQuarantineAfterMax) {
    return Bad(spec, "norm_gate.quarantine_after", gate.quarantine_after(),
               absl::StrCat("1 to ", kQuarantineAfterMax, ", or 0 for never, are allowed"));
  }
  if (spec.optimizer().kind() == proto::Optimizer::VECTORS) {
    return Bad(spec, "optimizer.kind", "VECTORS",
               "functions have no norm that a gate could look at: leave norm_gate out");
  }
  return absl::OkStatus();
}

absl::Status CheckPromises(const proto::TableSpec& spec) {
  if (const auto contract = ContractFromProto(spec.contract()); !contract.ok()) {
    return Annotate(absl::StrCat("table '", spec.name(), "'"), contract.status());
  }
  if (!proto::NonFinitePolicy_IsValid(spec.non_finite())) {
    return Bad(spec, "non_finite", static_cast<int>(spec.non_finite()), kUnknown);
  }
  COVEY_RETURN_IF_ERROR(CheckNormGate(spec));
  if (!proto::WireFormat_IsValid(spec.gradient_format())) {
    return Bad(spec, "gradient_format", static_cast<int>(spec.gradient_format()), kUnknown);
  }
  if (!proto::WireFormat_IsValid(spec.value_format())) {
    return Bad(spec, "value_format", static_cast<int>(spec.value_format()), kUnknown);
  }
  if (spec.value_format() == proto::WIRE_TOP_BLOCK) {
    return Bad(
        spec, "value_format", proto::WireFormat_Name(spec.value_format()),
        "it leaves out most elements, and values have nothing that brings them later: choose "
        "another format");
  }
  if (spec.contract().kind() == proto::Contract::LOCAL &&
      spec.value_format() != proto::WIRE_FLOAT32) {
    return Bad(spec, "value_format", proto::WireFormat_Name(spec.value_format()),
               "after a loss, members of a LOCAL table go on from the values that they have sent "
               "each other: leave it out");
  }
  if (!proto::Durability_IsValid(spec.durability())) {
    return Bad(spec, "durability", static_cast<int>(spec.durability()), kUnknown);
  }
  if (spec.durability() == proto::MEMORY && spec.replicas() > 1) {
    return Bad(spec, "replicas", spec.replicas(),
               "a table of durability MEMORY has one: use REPLICATED, or leave replicas out");
  }
  if (spec.durability() != proto::MEMORY && spec.replicas() == 1) {
    return Bad(spec, "replicas", 1, "one server alone loses what it holds: use MEMORY to say so");
  }
  if (spec.replicas() > kReplicasMax) {
    return Bad(spec, "replicas", spec.replicas(),
               absl::StrCat("2 to ", kReplicasMax, " (or 0) are allowed"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckTableSpec(const proto::TableSpec& spec) {
  COVEY_RETURN_IF_ERROR(CheckName(spec.name()));
  COVEY_RETURN_IF_ERROR(CheckShape(spec));
  COVEY_RETURN_IF_ERROR(CheckInitializer(spec));
  COVEY_RETURN_IF_ERROR(CheckOptimizer(spec, "optimizer", spec.optimizer()));
  if (spec.contract().kind() != proto::Contract::LOCAL || spec.has_learning_rate()) {
    COVEY_RETURN_IF_ERROR(CheckLearningRate(spec, "learning_rate", spec.learning_rate()));
  }
  COVEY_RETURN_IF_ERROR(CheckInner(spec));
  COVEY_RETURN_IF_ERROR(CheckAsynchrony(spec));
  COVEY_RETURN_IF_ERROR(CheckSparse(spec));
  COVEY_RETURN_IF_ERROR(CheckVectors(spec));
  return CheckPromises(spec);
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/optimizer.h"

#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"
#include "common/optimizer/makers.h"

namespace covey {
namespace {

struct Range {
  double low;
  double high;
  bool high_is_allowed = true;
};

absl::Status CheckRange(absl::string_view field, double value, Range range) {
  // Written so that NaN fails the check.
  if (value >= range.low &&
      (value < range.high || (range.high_is_allowed && value == range.high))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("optimizer: ", field, " is ", value,
                                                 "; choose a value in [", range.low, ", ",
                                                 range.high, range.high_is_allowed ? "]" : ")"));
}

bool HasKernels(OptimizerKind kind, const UpdateKernels& kernels) {
  switch (kind) {
    case OptimizerKind::kSgd:
    case OptimizerKind::kVectors:
      return kernels.sgd != nullptr;
    case OptimizerKind::kMomentum:
      return kernels.momentum != nullptr;
    case OptimizerKind::kNesterov:
      return kernels.nesterov != nullptr;
    case OptimizerKind::kAdagrad:
      return kernels.adagrad != nullptr;
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return kernels.adam != nullptr;
    case OptimizerKind::kLars:
      return kernels.lars != nullptr;
    case OptimizerKind::kLamb:
      return kernels.lamb != nullptr;
    case OptimizerKind::kDelayedNesterov:
      return kernels.hold_delayed_nesterov != nullptr &&
             kernels.release_delayed_nesterov != nullptr;
    case OptimizerKind::kRowwiseAdagrad:
    case OptimizerKind::kFtrl:
      return false;
  }
  return true;  // MakeOptimizer refuses what it does not know.
}

}  // namespace

absl::string_view OptimizerName(OptimizerKind kind) {
  switch (kind) {
    case OptimizerKind::kSgd:
      return "sgd";
    case OptimizerKind::kMomentum:
      return "momentum";
    case OptimizerKind::kNesterov:
      return "nesterov";
    case OptimizerKind::kAdagrad:
      return "adagrad";
    case OptimizerKind::kAdam:
      return "adam";
    case OptimizerKind::kAdamW:
      return "adamw";
    case OptimizerKind::kLars:
      return "lars";
    case OptimizerKind::kLamb:
      return "lamb";
    case OptimizerKind::kDelayedNesterov:
      return "delayed_nesterov";
    case OptimizerKind::kRowwiseAdagrad:
      return "rowwise_adagrad";
    case OptimizerKind::kFtrl:
      return "ftrl";
    case OptimizerKind::kVectors:
      return "vectors";
  }
  return "unknown";
}

bool HasMomentum(OptimizerKind kind) {
  return kind == OptimizerKind::kMomentum || kind == OptimizerKind::kNesterov ||
         kind == OptimizerKind::kLars || kind == OptimizerKind::kDelayedNesterov;
}

bool NeedsRows(OptimizerKind kind) {
  return kind == OptimizerKind::kRowwiseAdagrad || kind == OptimizerKind::kFtrl;
}

bool IsElementwise(OptimizerKind kind) {
  return kind != OptimizerKind::kLars && kind != OptimizerKind::kLamb &&
         kind != OptimizerKind::kRowwiseAdagrad;
}

absl::Status OptimizerConfig::Validate() const {
  COVEY_RETURN_IF_ERROR(CheckRange("weight_decay", weight_decay, {0, 1}));
  COVEY_RETURN_IF_ERROR(CheckRange("momentum", momentum, {0, 1, false}));
  COVEY_RETURN_IF_ERROR(CheckRange("beta1", beta1, {0, 1, false}));
  COVEY_RETURN_IF_ERROR(CheckRange("beta2", beta2, {0, 1, false}));
  COVEY_RETURN_IF_ERROR(CheckRange("epsilon", epsilon, {1e-12, 1}));
  COVEY_RETURN_IF_ERROR(CheckRange("trust_coefficient", trust_coefficient, {1e-12, 1}));
  COVEY_RETURN_IF_ERROR(CheckRange("delay", delay, {1, kDelayMax}));
  COVEY_RETURN_IF_ERROR(CheckRange("vectors", vectors, {1, kVectorsMax}));
  COVEY_RETURN_IF_ERROR(CheckRange("ftrl_beta", ftrl_beta, {0, 1e6}));
  COVEY_RETURN_IF_ERROR(CheckRange("l1", l1, {0, 1e6}));
  COVEY_RETURN_IF_ERROR(CheckRange("l2", l2, {0, 1e6}));
  return absl::OkStatus();
}

void Optimizer::Apply(const UpdateContext& context, std::span<const float> gradient_sum,
                      std::span<const float> values_in, std::span<float> values_out,
                      std::span<const SlotSpans> slots) const {
  COVEY_CHECK(context.update_index >= 1);
  COVEY_CHECK(!context.momentum || (*context.momentum >= 0 && *context.momentum < 1));
  COVEY_CHECK(gradient_sum.size() == values_out.size());
  COVEY_CHECK(values_in.size() == values_out.size());
  COVEY_CHECK(slots.size() == static_cast<size_t>(state_slots()));
  for (const SlotSpans& slot : slots) {
    COVEY_CHECK(slot.in.size() == values_out.size() && slot.out.size() == values_out.size());
  }
  Update(context, gradient_sum, values_in, values_out, slots);
}

absl::StatusOr<std::unique_ptr<Optimizer>> MakeOptimizer(const OptimizerConfig& config,
                                                         const UpdateKernels& kernels) {
  COVEY_RETURN_IF_ERROR(config.Validate());
  if (NeedsRows(config.kind)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer: ", OptimizerName(config.kind),
        " updates the rows of sparse tables, and this table is dense; choose adagrad, ",
        "or make the table sparse"));
  }
  if (!HasKernels(config.kind, kernels)) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer: ", OptimizerName(config.kind), " has no kernel for this memory"));
  }
  switch (config.kind) {
    case OptimizerKind::kSgd:
      return MakeSgd(config, kernels);
    case OptimizerKind::kMomentum:
    case OptimizerKind::kNesterov:
      return MakeMomentum(config, kernels);
    case OptimizerKind::kAdagrad:
      return MakeAdagrad(config, kernels);
    case OptimizerKind::kAdam:
    case OptimizerKind::kAdamW:
      return MakeAdam(config, kernels);
    case OptimizerKind::kLars:
      return MakeLars(config, kernels);
    case OptimizerKind::kLamb:
      return MakeLamb(config, kernels);
    case OptimizerKind::kDelayedNesterov:
      return MakeDelayedNesterov(config, kernels);
    case OptimizerKind::kVectors:
      return MakeVectors(config, kernels);
    case OptimizerKind::kRowwiseAdagrad:
    case OptimizerKind::kFtrl:
      break;  // refused above
  }
  return absl::InvalidArgumentError(absl::StrCat("optimizer: kind ", static_cast<int>(config.kind),
                                                 " is unknown; choose one of OptimizerKind"));
}

}  // namespace covey

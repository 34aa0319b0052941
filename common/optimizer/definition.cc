#include "common/optimizer/definition.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

absl::Status Refuse(absl::string_view field, int value) {
  return absl::InvalidArgumentError(absl::StrCat(
      field, " ", value, " is not known to this program; choose one of table.proto, or ",
      "run programs of the scheduler's version"));
}

absl::StatusOr<OptimizerKind> OptimizerKindOf(proto::Optimizer::Kind kind) {
  switch (kind) {
    case proto::Optimizer::SGD:
      return OptimizerKind::kSgd;
    case proto::Optimizer::MOMENTUM:
      return OptimizerKind::kMomentum;
    case proto::Optimizer::NESTEROV:
      return OptimizerKind::kNesterov;
    case proto::Optimizer::ADAGRAD:
      return OptimizerKind::kAdagrad;
    case proto::Optimizer::ADAM:
      return OptimizerKind::kAdam;
    case proto::Optimizer::ADAMW:
      return OptimizerKind::kAdamW;
    default:
      return Refuse("optimizer kind", kind);
  }
}

}  // namespace

absl::StatusOr<OptimizerConfig> OptimizerFromProto(const proto::Optimizer& optimizer) {
  OptimizerConfig config;
  COVEY_ASSIGN_OR_RETURN(config.kind, OptimizerKindOf(optimizer.kind()));
  config.weight_decay = optimizer.weight_decay();
  config.momentum = optimizer.momentum();
  if (optimizer.beta1() != 0) config.beta1 = optimizer.beta1();
  if (optimizer.beta2() != 0) config.beta2 = optimizer.beta2();
  if (optimizer.epsilon() != 0) {
    config.epsilon = optimizer.epsilon();
  } else if (config.kind == OptimizerKind::kAdagrad) {
    config.epsilon = 1e-10;
  }
  return config;
}

absl::StatusOr<LearningRateConfig> LearningRateFromProto(const proto::LearningRate& rate) {
  LearningRateConfig config{.base_rate = rate.base(),
                            .warmup_samples = rate.warmup_samples(),
                            .decay_samples = rate.decay_samples(),
                            .decay_factor = rate.decay_factor()};
  switch (rate.decay()) {
    case proto::LearningRate::CONSTANT:
      config.decay = Decay::kConstant;
      return config;
    case proto::LearningRate::STEP:
      config.decay = Decay::kStep;
      return config;
    case proto::LearningRate::LINEAR:
      config.decay = Decay::kLinear;
      return config;
    case proto::LearningRate::COSINE:
      config.decay = Decay::kCosine;
      return config;
    default:
      return Refuse("learning rate decay", rate.decay());
  }
}

}  // namespace covey

#include "common/optimizer/definition.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"

namespace covey {
namespace {

absl::Status Unknown(absl::string_view field, int value) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " ", value, " is not known here; choose one of table.proto, or run all ",
                   "processes of the job in the scheduler's version"));
}

absl::StatusOr<OptimizerKind> KindOf(proto::Optimizer::Kind kind) {
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
    case proto::Optimizer::LARS:
      return OptimizerKind::kLars;
    case proto::Optimizer::LAMB:
      return OptimizerKind::kLamb;
    case proto::Optimizer::DELAYED_NESTEROV:
      return OptimizerKind::kDelayedNesterov;
    default:
      return Unknown("optimizer kind", kind);
  }
}

absl::StatusOr<Decay> DecayOf(proto::LearningRate::Decay decay) {
  switch (decay) {
    case proto::LearningRate::CONSTANT:
      return Decay::kConstant;
    case proto::LearningRate::STEP:
      return Decay::kStep;
    case proto::LearningRate::LINEAR:
      return Decay::kLinear;
    case proto::LearningRate::COSINE:
      return Decay::kCosine;
    default:
      return Unknown("learning rate decay", decay);
  }
}

}  // namespace

absl::StatusOr<OptimizerConfig> OptimizerFromProto(const proto::Optimizer& optimizer) {
  OptimizerConfig config;
  COVEY_ASSIGN_OR_RETURN(config.kind, KindOf(optimizer.kind()));
  config.weight_decay = optimizer.weight_decay();
  config.momentum = optimizer.momentum();
  if (optimizer.beta1() != 0) config.beta1 = optimizer.beta1();
  if (optimizer.beta2() != 0) config.beta2 = optimizer.beta2();
  if (optimizer.epsilon() != 0) {
    config.epsilon = optimizer.epsilon();
  } else if (config.kind == OptimizerKind::kAdagrad) {
    config.epsilon = 1e-10;
  }
  if (optimizer.trust_coefficient() != 0) config.trust_coefficient = optimizer.trust_coefficient();
  if (optimizer.delay() != 0) config.delay = optimizer.delay();
  return config;
}

absl::StatusOr<LearningRateConfig> LearningRateFromProto(const proto::LearningRate& rate) {
  LearningRateConfig config{.base_rate = rate.base(),
                            .warmup_samples = rate.warmup_samples(),
                            .decay_samples = rate.decay_samples(),
                            .decay_factor = rate.decay_factor()};
  COVEY_ASSIGN_OR_RETURN(config.decay, DecayOf(rate.decay()));
  return config;
}

}  // namespace covey

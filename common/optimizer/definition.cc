// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/definition.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/enum_map.h"

namespace covey {
namespace {

absl::Status Unknown(absl::string_view field, int value) {
  return absl::InvalidArgumentError(
      absl::StrCat(field, " ", value, " is not known here; choose one of table.proto, or run all ",
                   "processes of the job in the scheduler's version"));
}

constexpr EnumMap kKinds({
    std::pair(OptimizerKind::kSgd, proto::Optimizer::SGD),
    std::pair(OptimizerKind::kMomentum, proto::Optimizer::MOMENTUM),
    std::pair(OptimizerKind::kNesterov, proto::Optimizer::NESTEROV),
    std::pair(OptimizerKind::kAdagrad, proto::Optimizer::ADAGRAD),
    std::pair(OptimizerKind::kAdam, proto::Optimizer::ADAM),
    std::pair(OptimizerKind::kAdamW, proto::Optimizer::ADAMW),
    std::pair(OptimizerKind::kLars, proto::Optimizer::LARS),
    std::pair(OptimizerKind::kLamb, proto::Optimizer::LAMB),
    std::pair(OptimizerKind::kDelayedNesterov, proto::Optimizer::DELAYED_NESTEROV),
    std::pair(OptimizerKind::kRowwiseAdagrad, proto::Optimizer::ROWWISE_ADAGRAD),
    std::pair(OptimizerKind::kFtrl, proto::Optimizer::FTRL),
    std::pair(OptimizerKind::kVectors, proto::Optimizer::VECTORS),
});
static_assert(kKinds.IsOneToOne() && kKinds.size() == proto::Optimizer::Kind_ARRAYSIZE);

constexpr EnumMap kDecays({
    std::pair(Decay::kConstant, proto::LearningRate::CONSTANT),
    std::pair(Decay::kStep, proto::LearningRate::STEP),
    std::pair(Decay::kLinear, proto::LearningRate::LINEAR),
    std::pair(Decay::kCosine, proto::LearningRate::COSINE),
});
static_assert(kDecays.IsOneToOne() && kDecays.size() == proto::LearningRate::Decay_ARRAYSIZE);

}  // namespace

absl::StatusOr<OptimizerConfig> OptimizerFromProto(const proto::Optimizer& optimizer) {
  const std::optional<OptimizerKind> kind = kKinds.ToOurs(optimizer.kind());
  if (!kind.has_value()) return Unknown("optimizer kind", optimizer.kind());
  OptimizerConfig config{.kind = *kind};
  config.weight_decay = optimizer.weight_decay();
  config.momentum = optimizer.momentum();
  if (optimizer.beta1() != 0) config.beta1 = optimizer.beta1();
  if (optimizer.beta2() != 0) config.beta2 = optimizer.beta2();
  if (optimizer.epsilon() != 0) {
    config.epsilon = optimizer.epsilon();
  } else if (config.kind == OptimizerKind::kAdagrad ||
             config.kind == OptimizerKind::kRowwiseAdagrad) {
    config.epsilon = 1e-10;
  }
  if (optimizer.trust_coefficient() != 0) config.trust_coefficient = optimizer.trust_coefficient();
  if (optimizer.delay() != 0) config.delay = optimizer.delay();
  if (optimizer.has_ftrl_beta()) config.ftrl_beta = optimizer.ftrl_beta();
  config.l1 = optimizer.l1();
  config.l2 = optimizer.l2();
  if (optimizer.vectors() != 0) config.vectors = optimizer.vectors();
  return config;
}

absl::StatusOr<LearningRateConfig> LearningRateFromProto(const proto::LearningRate& rate) {
  const std::optional<Decay> decay = kDecays.ToOurs(rate.decay());
  if (!decay.has_value()) return Unknown("learning rate decay", rate.decay());
  return LearningRateConfig{.base_rate = rate.base(),
                            .warmup_samples = rate.warmup_samples(),
                            .decay = *decay,
                            .decay_samples = rate.decay_samples(),
                            .decay_factor = rate.decay_factor()};
}

}  // namespace covey

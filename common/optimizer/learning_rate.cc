// SPDX-License-Identifier: Apache-2.0
#include "common/optimizer/learning_rate.h"

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/optimizer/portable_math.h"

namespace covey {
namespace {

absl::Status OutOfRange(absl::string_view field, double value, absl::string_view range) {
  return absl::InvalidArgumentError(
      absl::StrCat("learning rate: ", field, " is ", value, "; choose a value ", range));
}

}  // namespace

absl::string_view DecayName(Decay decay) {
  switch (decay) {
    case Decay::kConstant:
      return "constant";
    case Decay::kStep:
      return "step";
    case Decay::kLinear:
      return "linear";
    case Decay::kCosine:
      return "cosine";
  }
  return "unknown";
}

absl::Status LearningRateConfig::Validate() const {
  // Each condition is written so that NaN fails it.
  if (!(base_rate > 0 && base_rate <= 1000)) {
    return OutOfRange("base_rate", base_rate, "above 0 and at most 1000");
  }
  if (!(decay_factor >= 0 && decay_factor <= 1)) {
    return OutOfRange("decay_factor", decay_factor, "in [0, 1]");
  }
  if (decay == Decay::kStep && decay_samples == 0) {
    return absl::InvalidArgumentError(
        "learning rate: decay is step but decay_samples is 0; choose a value above 0");
  }
  if ((decay == Decay::kLinear || decay == Decay::kCosine) && decay_samples <= warmup_samples) {
    return absl::InvalidArgumentError(absl::StrCat(
        "learning rate: decay is ", DecayName(decay), " and decay_samples is ", decay_samples,
        "; choose a value above warmup_samples, which is ", warmup_samples));
  }
  return absl::OkStatus();
}

absl::StatusOr<LearningRateSchedule> LearningRateSchedule::Create(
    const LearningRateConfig& config) {
  COVEY_RETURN_IF_ERROR(config.Validate());
  return LearningRateSchedule(config);
}

double LearningRateSchedule::RateAt(uint64_t samples) const {
  const LearningRateConfig& c = config_;
  if (samples < c.warmup_samples) {
    return c.base_rate * (static_cast<double>(samples) / static_cast<double>(c.warmup_samples));
  }
  switch (c.decay) {
    case Decay::kConstant:
      break;
    case Decay::kStep: {
      // The update that completes a period still uses that period's rate.
      const uint64_t periods = samples == 0 ? 0 : (samples - 1) / c.decay_samples;
      return c.base_rate * Power(c.decay_factor, periods);
    }
    case Decay::kLinear:
      return c.base_rate * (1 - (1 - c.decay_factor) * Progress(samples));
    case Decay::kCosine: {
      const double left = 0.5 * (1 + CosineOfPi(Progress(samples)));
      return c.base_rate * (c.decay_factor + (1 - c.decay_factor) * left);
    }
  }
  return c.base_rate;
}

double LearningRateSchedule::Progress(uint64_t samples) const {
  const double length = static_cast<double>(config_.decay_samples - config_.warmup_samples);
  return std::min(1.0, static_cast<double>(samples - config_.warmup_samples) / length);
}

}  // namespace covey

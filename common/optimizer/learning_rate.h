// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace covey {

enum class Decay { kConstant, kStep, kLinear, kCosine };

// In lower case: "constant", …, "cosine".
absl::string_view DecayName(Decay decay);

// A learning rate over training progress: a linear warmup, then a decay. All lengths are in
// samples, so that a change of batch size, group count or contract does not stretch the schedule.
struct LearningRateConfig {
  // Rate after the warmup and before the decay. Above 0, at most 1000.
  double base_rate = 0.01;
  // The rate grows in proportion to the samples until it reaches base_rate here. 0: no warmup.
  uint64_t warmup_samples = 0;
  Decay decay = Decay::kConstant;
  // Counted from the first sample, the warmup included. Step: length of a period, at least 1.
  // Linear and cosine: where the rate reaches its final value, which it keeps; above
  // warmup_samples.
  uint64_t decay_samples = 0;
  // Step: the factor on the rate for each period. Linear and cosine: the final rate as a fraction
  // of base_rate. In [0, 1].
  double decay_factor = 0;

  // INVALID_ARGUMENT: a field is out of its range, or not a number; names the field, its value and
  // the range.
  absl::Status Validate() const;
};

// What a pusher may multiply a schedule's rate by.
inline constexpr double kRateFactorMax = 1e9;
inline bool IsRateFactor(double factor) { return factor >= 0 && factor <= kRateFactorMax; }

// Immutable; pure; the same bits on every machine.
class LearningRateSchedule {
 public:
  // INVALID_ARGUMENT: as LearningRateConfig::Validate.
  static absl::StatusOr<LearningRateSchedule> Create(const LearningRateConfig& config);

  // Rate of the update that brings the total to `samples`, its own included. So the first update of
  // a warmup has a rate above 0, and the last one of a decay uses the final rate.
  double RateAt(uint64_t samples) const;

 private:
  explicit LearningRateSchedule(const LearningRateConfig& config) : config_(config) {}

  // From 0 at the end of the warmup to 1 at decay_samples and after.
  double Progress(uint64_t samples) const;

  LearningRateConfig config_;
};

}  // namespace covey

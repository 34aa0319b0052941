// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace covey {

enum class InitializerKind { kZeros, kConstant, kUniform, kNormal, kGiven };

// The first values of a table. Unless a node gives them (kGiven), an element's value is a function
// of the seed and of its index in the whole table. It does not depend on the shard it lies in, the
// order of filling, the library or the processor.
struct InitializerConfig {
  InitializerKind kind = InitializerKind::kZeros;
  // Constant: every element. Uniform: the lower bound, included. Normal: the mean.
  float a = 0;
  // Uniform: the upper bound, excluded. Normal: the standard deviation, at least 0.
  float b = 0;
  uint64_t seed = 0;

  // INVALID_ARGUMENT: a parameter that the kind uses is not finite or out of range; names it.
  absl::Status Validate() const;
};

}  // namespace covey

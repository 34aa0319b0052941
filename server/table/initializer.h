#pragma once

#include <cstdint>
#include <span>

#include "absl/status/status.h"

namespace covey::server {

enum class InitializerKind { kZeros, kConstant, kUniform, kNormal };

// The first values of a table. An element's value is a function of the seed and of its index in the
// whole table, and of nothing else: not of the shard it lies in, the order of filling, the library
// or the processor.
struct InitializerConfig {
  InitializerKind kind = InitializerKind::kZeros;
  // Constant: every element. Uniform: the least value. Normal: the mean.
  float a = 0;
  // Uniform: above every value. Normal: the standard deviation, at least 0.
  float b = 0;
  uint64_t seed = 0;

  // INVALID_ARGUMENT: a parameter that the kind uses is not finite or out of range; names it.
  absl::Status Validate() const;
};

// Fills `values`, the first of which is element `first_element` of the table. Pure; splitting a
// range gives the same bits. Precondition: the config is valid. Takes about 3 ns per element for
// uniform, 18 ns for normal: 5 ms for a shard of 1 MiB.
void Initialize(const InitializerConfig& config, uint64_t first_element, std::span<float> values);

}  // namespace covey::server

// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/workloads/counting/counting_functions.h"

#include <cmath>

namespace covey::sim {
namespace {

// Sums of these are exact in float32.
constexpr uint64_t kBits = 20;

}  // namespace

uint32_t VectorsOf(uint64_t slots) { return static_cast<uint32_t>((slots + kBits - 1) / kBits); }

std::vector<VectorFunction> FunctionsOfPush(uint64_t slot) {
  return {{.kind = VectorFunction::Kind::kAxpy,
           .target = static_cast<uint32_t>(1 + slot / kBits),
           .source = 0,
           .scalar = std::ldexp(1.0, static_cast<int>(slot % kBits))}};
}

uint64_t SlotOfFunction(const proto::VectorFunction& function) {
  return (function.target() - 1) * kBits + static_cast<uint64_t>(std::ilogb(function.scalar()));
}

std::vector<VectorQuery> QueriesOf(uint64_t slots) {
  std::vector<VectorQuery> queries;
  for (uint32_t vector = 1; vector <= VectorsOf(slots); ++vector) {
    queries.push_back({.kind = VectorQuery::Kind::kMax, .vector = vector});
  }
  return queries;
}

std::vector<float> SlotsIn(std::span<const VectorAnswer> answers, uint64_t slots) {
  std::vector<float> values(slots);
  for (uint64_t slot = 0; slot < slots; ++slot) {
    const double sum = answers[slot / kBits].value;
    const bool is_of_bits = sum >= 0 && sum < std::ldexp(1.0, kBits) && sum == std::floor(sum);
    const uint64_t bits = is_of_bits ? static_cast<uint64_t>(sum) : 0;
    values[slot] = is_of_bits ? static_cast<float>(bits >> slot % kBits & 1) : 2;
  }
  return values;
}

}  // namespace covey::sim

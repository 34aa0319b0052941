// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "common/collective/algorithm.h"
#include "common/collective/collective_kind.h"
#include "common/collective/part_range.h"
#include "common/collective/plan.h"
#include "common/collective/sections.h"

namespace covey::worker {

// One element of the sum at member `rank` of a section's reduction tree, that of its owner or, if
// all members own it, of member 0; each addition rounded to float, in the plan's order.
inline float ReferenceSum(std::span<const std::vector<float>> members, const Plan& plan,
                          const Section& section, uint32_t rank, size_t element) {
  std::optional<float> sum;
  for (const uint32_t operand :
       plan.Reduce(section.owner.value_or(0), section.stripe, rank).operands) {
    const float value = operand == rank ? members[rank][element]
                                        : ReferenceSum(members, plan, section, operand, element);
    sum = sum ? *sum + value : value;
  }
  return *sum;
}

// What a reduction in float32 must give, bit for bit, written as plainly as possible. `members`
// holds each member's whole tensor, `parts` one range per member. The result is the whole tensor.
// For tests and for single-process runs that must equal a group's.
inline std::vector<float> ReferenceReduce(std::span<const std::vector<float>> members,
                                          std::span<const PartRange> parts, const Plan& plan,
                                          CollectiveKind kind = CollectiveKind::kReduceScatter) {
  std::vector<float> sum = members[0];
  for (const Section& section : SectionsOf(plan, kind, parts, sum.size(), 0)) {
    for (size_t i = section.range.first; i < section.range.first + section.range.count; ++i) {
      sum[i] = ReferenceSum(members, plan, section, section.owner.value_or(0), i);
    }
  }
  return sum;
}

// The same for the ring: part i is the sum in the order i + 1, i + 2, ..., i (wrapping).
inline std::vector<float> ReferenceReduce(std::span<const std::vector<float>> members,
                                          std::span<const PartRange> parts) {
  const Plan ring(
      {.algorithm = Algorithm::kRing, .size = static_cast<uint32_t>(members.size()), .paths = {}});
  return ReferenceReduce(members, parts, ring);
}

}  // namespace covey::worker

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/collective/collective_kind.h"
#include "common/collective/part_range.h"
#include "common/collective/plan.h"

namespace covey {

// A range of the tensor that travels along one pair of trees of a plan.
struct Section {
  // None: every member owns the range. All values travel up the reduction trees of all owners, and
  // nothing is spread.
  std::optional<uint32_t> owner;
  uint32_t stripe = 0;
  PartRange range;

  friend bool operator==(const Section&, const Section&) = default;
};

// The sections of one collective, in growing order of elements. For reduce-scatter, all-gather and
// all-reduce, `parts` has one disjoint range per member. A broadcast sends all `element_count`
// elements from `root`; a barrier has one section without elements. Empty ranges are left out.
// Pure, so that all members cut a tensor in the same way.
std::vector<Section> SectionsOf(const Plan& plan, CollectiveKind kind,
                                std::span<const PartRange> parts, size_t element_count,
                                uint32_t root);

}  // namespace covey

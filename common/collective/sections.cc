// SPDX-License-Identifier: Apache-2.0
#include "common/collective/sections.h"

#include <algorithm>

#include "common/collective/algorithm.h"

namespace covey {

std::vector<Section> SectionsOf(const Plan& plan, CollectiveKind kind,
                                std::span<const PartRange> parts, size_t element_count,
                                uint32_t root) {
  std::vector<Section> whole;  // not cut into stripes yet
  switch (kind) {
    case CollectiveKind::kBarrier:
      return {Section{}};
    case CollectiveKind::kBroadcast:
      whole.push_back({.owner = root, .stripe = 0, .range = {.first = 0, .count = element_count}});
      break;
    default: {
      // In an all-reduce the owner of a part does not matter, so one tree serves the whole tensor.
      const bool one_tree =
          kind == CollectiveKind::kAllReduce && plan.algorithm() == Algorithm::kTree;
      for (uint32_t owner = 0; owner < parts.size(); ++owner) {
        whole.push_back({.owner = one_tree ? 0 : owner, .stripe = 0, .range = parts[owner]});
      }
      std::stable_sort(whole.begin(), whole.end(), [](const Section& a, const Section& b) {
        return a.range.first < b.range.first;
      });
      break;
    }
  }
  std::vector<Section> sections;
  for (const Section& section : whole) {
    if (section.range.count == 0) continue;
    if (plan.stripes() == 1) {
      Section* last = sections.empty() ? nullptr : &sections.back();
      if (last != nullptr && last->owner == section.owner &&
          last->range.first + last->range.count == section.range.first) {
        last->range.count += section.range.count;
      } else {
        sections.push_back(section);
      }
      continue;
    }
    const std::vector<PartRange> stripes = EvenParts(section.range.count, plan.stripes());
    for (uint32_t stripe = 0; stripe < plan.stripes(); ++stripe) {
      if (stripes[stripe].count == 0) continue;
      sections.push_back({.owner = section.owner,
                          .stripe = stripe,
                          .range = {.first = section.range.first + stripes[stripe].first,
                                    .count = stripes[stripe].count}});
    }
  }
  return sections;
}

}  // namespace covey

// SPDX-License-Identifier: Apache-2.0
#include "common/collective/sections.h"

#include <algorithm>
#include <optional>

#include "common/collective/algorithm.h"

namespace covey {
namespace {

// The owner of the part of `member`. Where all members end with all values, the algorithm chooses
// the owner; nullopt: every member.
std::optional<uint32_t> OwnerOf(uint32_t member, const Plan& plan, CollectiveKind kind) {
  if (kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kBarrier) {
    if (plan.algorithm() == Algorithm::kTree) return 0;
    if (plan.algorithm() == Algorithm::kOneShot && plan.size() > 1) return std::nullopt;
  }
  return member;
}

}  // namespace

std::vector<Section> SectionsOf(const Plan& plan, CollectiveKind kind,
                                std::span<const PartRange> parts, size_t element_count,
                                uint32_t root) {
  std::vector<Section> whole;  // not cut into stripes yet
  switch (kind) {
    case CollectiveKind::kBarrier:
      return {{.owner = OwnerOf(0, plan, kind)}};
    case CollectiveKind::kBroadcast:
      whole.push_back({.owner = root, .stripe = 0, .range = {.first = 0, .count = element_count}});
      break;
    default:
      for (uint32_t member = 0; member < parts.size(); ++member) {
        whole.push_back(
            {.owner = OwnerOf(member, plan, kind), .stripe = 0, .range = parts[member]});
      }
      std::stable_sort(whole.begin(), whole.end(), [](const Section& a, const Section& b) {
        return a.range.first < b.range.first;
      });
      break;
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

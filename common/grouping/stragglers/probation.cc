// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/probation.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace covey {
namespace {

// The term doubles at most this many times.
constexpr uint32_t kDoublingsMax = 6;

}  // namespace

std::vector<StragglerAction> Probation::End(absl::Time now, const std::vector<GroupInForce>& groups,
                                            const std::vector<GroupMember>& evicted) {
  std::vector<StragglerAction> actions;
  for (const GroupMember& member : evicted) {
    Record& record = records_[member.node];
    const uint32_t doublings = std::min(std::max(record.evictions, 1u) - 1, kDoublingsMax);
    const absl::Duration term = term_ * (1 << doublings);
    if (record.until == absl::InfinitePast()) record.until = now + term;
    if (now < record.until) continue;
    record.until = absl::InfinitePast();
    actions.push_back({.kind = StragglerAction::Kind::kRegroup,
                       .member = member.node,
                       .to = FindGroup(member.home, groups) != nullptr ? member.home : GroupId(),
                       .evidence = absl::StrCat(member.name, " has been out for ",
                                                absl::FormatDuration(term), " and may try again")});
  }
  return actions;
}

}  // namespace covey

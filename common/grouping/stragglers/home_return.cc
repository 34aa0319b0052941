// SPDX-License-Identifier: Apache-2.0
#include "common/grouping/stragglers/home_return.h"

#include "absl/strings/str_cat.h"
#include "common/grouping/stragglers/evidence_text.h"
#include "common/grouping/stragglers/group_efficiency.h"
#include "common/grouping/stragglers/straggler_rung.h"
#include "common/grouping/stragglers/worker_pace.h"

namespace covey {

std::optional<StragglerAction> HomeReturn::Consider(const GroupInForce& group,
                                                    const GroupMember& member,
                                                    const std::vector<GroupInForce>& groups,
                                                    const StragglerJudge& judge) {
  const GroupInForce* home = FindGroup(member.home, groups);
  if (options_.highest < StragglerRung::kRegroup || home == nullptr || home->id == group.id ||
      !HasRoom(*home) || group.members.size() <= options_.group_members_min) {
    return std::nullopt;
  }
  const std::vector<const WorkerPace*> paces = judge.KnownPaces(*home);
  const double pace = judge.PaceOf(member.node).seconds_per_sample();
  const bool fits = !paces.empty() && paces.size() == home->members.size() &&
                    pace < options_.recovered_ratio * MedianPace(paces);
  size_t& reports = fits_[member.node];
  reports = fits ? reports + 1 : 0;
  if (reports < options_.recovered_reports) return std::nullopt;
  return StragglerAction{.kind = StragglerAction::Kind::kRegroup,
                         .group = group.id,
                         .member = member.node,
                         .to = home->id,
                         .evidence = absl::StrCat(member.name, " takes ", ShowTime(pace),
                                                  " per sample, as its old group does (",
                                                  ShowTime(MedianPace(paces)), ")")};
}

}  // namespace covey
